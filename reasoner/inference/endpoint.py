"""Responses of any server with OpenAI's interface, for evaluation alone: texts, without token ids and weights."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

from reasoner.config.check import check_least
from reasoner.console import log
from reasoner.inference.server_answers import parse_response
from reasoner.inference.server_client import RefusalError, ServerError, new_client, request_json, run_async
from reasoner.progress import OnDecodeStep
from reasoner.rollouts.prompts import Template, up_to_stop_text
from reasoner.types import Prompt, Response, SamplingParams

PATHS = {"chat": "/chat/completions", "completions": "/completions"}  # by --api
_ATTEMPTS = 7
_LONGEST_PAUSE = 60.0  # seconds between two attempts
_AGAIN = (408, 409, 425, 429)  # statuses that say "later"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model on a server with OpenAI's interface."""

    url: str  # with the version, such as https://HOST/v1
    model: str  # the server's name for it
    api: str = "chat"  # chat | completions
    key_variable: str = "OPENAI_API_KEY"  # environment variable with the API key; the key itself is stored nowhere
    concurrency: int = 16  # requests at once
    seconds: float = 1800.0  # limit of one request
    first_pause: float = 1.0  # seconds before the second attempt; doubled for each further one

    def check(self) -> None:
        """Raise ValueError for an address or an interface that is none."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise ValueError("--model-url must be http://HOST:PORT/v1 or https://HOST/v1")
        if parts.username or parts.password:
            raise ValueError(
                "--model-url holds a name or a password, which results would store; use --api-key-variable"
            )
        if self.api not in PATHS:
            raise ValueError(f"--api is {self.api!r}; known are {', '.join(PATHS)}")
        check_least(1, concurrency=self.concurrency)


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    """An endpoint with its prompt template and sampling settings."""

    endpoint: Endpoint
    template: Template
    prompt: str  # the template's style, or its file
    temperature: float
    top_p: float
    max_tokens: int  # of a completion


class EndpointClient:
    """Asks an endpoint for responses, several at once; an attempt that fails is repeated after a pause."""

    def __init__(self, endpoint: Endpoint) -> None:
        endpoint.check()
        self._endpoint = endpoint
        self._what = f"POST {endpoint.url.rstrip('/')}{PATHS[endpoint.api]}"

    def respond(
        self,
        prompts: Sequence[Prompt],
        sampling: SamplingParams,
        seeds: Sequence[Sequence[int]],
        on_decode_step: OnDecodeStep | None = None,
    ) -> list[tuple[Response, ...]]:
        """A response for each seed of each prompt. RuntimeError where every attempt fails."""
        return run_async(self._respond(prompts, sampling, seeds, on_decode_step))

    async def _respond(
        self,
        prompts: Sequence[Prompt],
        sampling: SamplingParams,
        seeds: Sequence[Sequence[int]],
        on_decode_step: OnDecodeStep | None,
    ) -> list[tuple[Response, ...]]:
        key = os.environ.get(self._endpoint.key_variable, "")
        slots = asyncio.Semaphore(self._endpoint.concurrency)
        counts = [0, 0]  # responses, and their tokens

        async with new_client(key, uses_proxy=True) as client:

            async def respond(prompt: Prompt, seed: int) -> Response:
                async with slots:
                    response = await self._attempt(client, prompt, sampling, seed)
                counts[0], counts[1] = counts[0] + 1, counts[1] + (response.tokens or 0)
                if on_decode_step is not None:
                    on_decode_step(lambda: (counts[0], counts[1]))
                return response

            pairs = [(prompt, seed) for prompt, own in zip(prompts, seeds, strict=True) for seed in own]
            tasks = [asyncio.create_task(respond(prompt, seed)) for prompt, seed in pairs]
            try:
                responses = iter(await asyncio.gather(*tasks))
            finally:
                for task in tasks:
                    task.cancel()
        return [tuple(next(responses) for _ in own) for own in seeds]

    async def _attempt(
        self, client: httpx.AsyncClient, prompt: Prompt, sampling: SamplingParams, seed: int
    ) -> Response:
        """Ask until there is an answer, at most _ATTEMPTS times."""
        endpoint = self._endpoint
        body, url = self._body(prompt, sampling, seed), endpoint.url.rstrip("/") + PATHS[endpoint.api]
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                answer = await request_json(
                    client,
                    "POST",
                    url,
                    body,
                    seconds=endpoint.seconds,
                    what=self._what,
                    num_tokens=sampling.max_tokens,
                )
                return self._response(answer, prompt, sampling, seed)
            except RefusalError as error:
                if error.status in (401, 403):
                    raise ValueError(f"{error}; the API key is read from ${endpoint.key_variable}") from error
                if error.status not in _AGAIN or attempt == _ATTEMPTS:
                    raise
                reason = str(error)
            except ServerError as error:
                if attempt == _ATTEMPTS:
                    raise ServerError(f"{error} (the last of {_ATTEMPTS} attempts)") from error
                reason = str(error)
            pause = min(_LONGEST_PAUSE, endpoint.first_pause * 2 ** (attempt - 1))
            log(f"attempt {attempt} of {_ATTEMPTS} failed, the next one in {pause:g} s: {reason}")
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _body(self, prompt: Prompt, sampling: SamplingParams, seed: int) -> dict[str, Any]:
        """The request. Stop texts are not in it: OpenAI's interface would leave them out of the text."""
        content: dict[str, Any] = {"prompt": prompt.text}
        if self._endpoint.api == "chat":
            content = {"messages": [{"role": "user", "content": prompt.text}]}
        return {
            "model": self._endpoint.model,
            **content,
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": seed % 2**31,  # some servers take 32 bits
        }

    def _response(self, answer: Mapping[str, Any], prompt: Prompt, sampling: SamplingParams, seed: int) -> Response:
        """The response in an answer: up to the first stop text, with the tokens that the server counted, if it did."""
        try:
            text, num_tokens, finish = parse_response(answer)
        except ServerError as error:
            raise ServerError(f"{self._what}: {error}") from error
        if any(stop in text for stop in sampling.stop):
            text, finish = up_to_stop_text(text, sampling.stop), "stop"
        return Response(prompt.prefill + text, num_tokens, finish, seed)
