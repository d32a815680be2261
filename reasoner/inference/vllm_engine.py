"""vLLM in this process: on a CPU, or on the GPU that it shares with the learner."""

from __future__ import annotations

import ctypes
import gc
import logging
import mmap
import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from reasoner.config.schema import EngineConfig
from reasoner.inference.rng import draw
from reasoner.inference.stop_tokens import end_token_ids, most_tokens, stop_token_ids, texts
from reasoner.models.loading import load_tokenizer
from reasoner.progress import Tick, uncounted
from reasoner.runtime import asleep
from reasoner.types import Completion, Done, Prompt, Sampling, unheard

if TYPE_CHECKING:
    from vllm import LLM, CompletionOutput, SamplingParams

_MAX_ROWS = 512  # completions in flight; the rest wait their turn


class VllmEngine:
    """One engine for the life of a run; it takes the learner's weights in memory."""

    name = "vllm"

    def __init__(self, folder: Path, cfg: EngineConfig, *, max_model_len: int, seed: int) -> None:
        _environment(cfg)
        threads, set_num_threads = torch.get_num_threads(), torch.set_num_threads
        with asleep():
            from vllm import LLM

        self._tokenizer = load_tokenizer(folder)
        self._ends = end_token_ids(folder, self._tokenizer)
        self._sleeps = torch.cuda.is_available()
        on_gpu = {"gpu_memory_utilization": cfg.gpu_memory, "enable_sleep_mode": True}
        on_cpu = {"block_size": 32}  # the default of 128 would cache no prompt that is shorter than that
        self._llm = LLM(
            str(folder),
            dtype=cfg.dtype,
            max_model_len=max_model_len,
            max_num_seqs=_MAX_ROWS,
            enforce_eager=not self._sleeps,
            enable_prefix_caching=True,
            logprobs_mode="processed_logprobs",
            seed=seed,
            disable_log_stats=True,
            use_tqdm_on_load=False,
            **(on_gpu if self._sleeps else on_cpu),
        )
        # The CPU worker puts a function that does nothing in the place of set_num_threads: the learner needs its own.
        torch.set_num_threads = set_num_threads
        torch.set_num_threads(threads)
        self._draws = not self._sleeps
        if self._draws:
            _install_draw(self._llm)
            _give_back(self._llm)
        self._max_model_len = max_model_len
        self._version = 0

    def sample(
        self,
        prompts: Sequence[Prompt],
        sampling: Sampling,
        seeds: Sequence[Sequence[int]],
        done: Done = unheard,
        tick: Tick = uncounted,
    ) -> list[tuple[Completion, ...]]:
        self._llm.reset_prefix_cache()  # what was asked before leaves no trace in the last digit of what is drawn now
        stop_ids, stop_texts = stop_token_ids(sampling, self._tokenizer)
        limits = [most_tokens(prompt, sampling, self._max_model_len) for prompt in prompts]
        engine = self._llm.llm_engine
        asked: dict[str, tuple[int, int]] = {}  # of each request the place of its prompt, and its own among the seeds
        drawn: list[dict[int, CompletionOutput]] = [{} for _ in prompts]
        found: list[tuple[Completion, ...]] = [()] * len(prompts)

        def counted() -> tuple[int, int]:
            ended = [len(output.token_ids) for own in drawn for output in own.values()]
            going = [state.detokenizer.num_output_tokens() for state in engine.output_processor.request_states.values()]
            return len(ended), sum(ended) + sum(going)

        try:
            for place, (prompt, limit, own) in enumerate(zip(prompts, limits, seeds, strict=True)):
                for number, seed in enumerate(own):
                    asked[name := f"{place}-{number}"] = (place, number)
                    how = self._params(sampling, seed, limit, stop_ids, stop_texts)
                    engine.add_request(name, {"prompt_token_ids": list(prompt.token_ids)}, how)
            while engine.has_unfinished_requests():
                for output in engine.step():
                    place, number = asked[output.request_id]
                    drawn[place][number] = output.outputs[0]
                    if len(drawn[place]) == len(seeds[place]):
                        found[place] = self._completions([own for _, own in sorted(drawn[place].items())], stop_texts)
                        done(place, found[place])
                tick(counted)
        except BaseException:
            engine.abort_request(list(asked))
            raise
        return found

    def _params(
        self, sampling: Sampling, seed: int, limit: int, stop_ids: Sequence[int], stop_texts: Sequence[str]
    ) -> SamplingParams:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        return SamplingParams(
            n=1,
            seed=None if self._draws else seed,
            extra_args={"seed": seed} if self._draws else None,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            max_tokens=limit,
            stop_token_ids=sorted({*stop_ids, *self._ends}),
            stop=list(stop_texts) or None,
            include_stop_str_in_output=True,
            skip_special_tokens=False,
            detokenize=bool(stop_texts),
            logprobs=0,  # of the drawn token alone
            flat_logprobs=True,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    def _completions(self, drawn: Sequence[CompletionOutput], stop_texts: Sequence[str]) -> tuple[Completion, ...]:
        decoded = texts([list(d.token_ids) for d in drawn], self._ends, stop_texts, self._tokenizer)
        return tuple(
            Completion(
                text=text,
                token_ids=tuple(d.token_ids),
                logprobs=tuple(d.logprobs.logprobs),
                finish="stop" if d.finish_reason == "stop" else "length" if d.finish_reason == "length" else "abort",
                policy_version=self._version,
            )
            for text, d in zip(decoded, drawn, strict=True)
        )

    def load_weights(self, named: Iterable[tuple[str, Tensor]], version: int) -> None:
        self._llm.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(list(named))})
        self._version = version

    def pause(self) -> None:
        if self._sleeps:
            self._llm.sleep(level=1)
        else:
            self._llm.reset_prefix_cache()
            _give_back(self._llm)

    def resume(self) -> None:
        if self._sleeps:
            torch.cuda.empty_cache()  # what the learner has freed and torch would keep for itself
            self._llm.wake_up()

    def close(self) -> None:
        del self._llm
        gc.collect()


def _runner(llm: LLM) -> Any:
    """What computes on a CPU, inside vLLM: constraints.txt pins its version."""
    return llm.llm_engine.model_executor.driver_worker.worker.model_runner


def _give_back(llm: LLM) -> None:
    """The memory of the key-value cache, which vLLM fills with zeros, to the system: what is used comes again."""
    storage = _runner(llm).kv_caches[0].untyped_storage()
    start = -(-storage.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
    size = (storage.data_ptr() + storage.nbytes() - start) // mmap.PAGESIZE * mmap.PAGESIZE
    ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), mmap.MADV_DONTNEED)


def _install_draw(llm: LLM) -> None:
    """Draw by (seed, position) where vLLM on a CPU would draw with a generator object for each request.

    Those cost 6 % of the sampling time of a small model, and vLLM 0.32 stops with "CPU Generator does not use offset"
    when a prompt with one is computed in two parts. Ranks of the drawn tokens, which nobody reads here, are left out:
    vLLM compiles a kernel for them at the first draw.
    """
    from vllm.v1.sample import sampler
    from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p

    runner = _runner(llm)

    def forward(
        logits: Tensor, generators: object, top_k: Tensor | None, top_p: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """[N, V] logits after temperature -> [N] drawn tokens, [N, V] processed log-probabilities."""
        log_softmax = apply_top_k_top_p(logits, top_k, top_p).log_softmax(dim=-1)
        rows = runner.input_batch.req_ids[: len(logits)]
        seeds = [runner.requests[row].sampling_params.extra_args["seed"] for row in rows]
        return draw(log_softmax, seeds, runner.input_batch.num_tokens_no_spec[: len(logits)]), log_softmax

    runner.sampler.topk_topp_sampler.forward = forward
    sampler.batched_count_greater_than = lambda logprobs, _: torch.zeros(len(logprobs), dtype=torch.int64)


def _environment(cfg: EngineConfig) -> None:
    """What vLLM reads from the environment when it is imported; what the user has set stays."""
    for name, value in {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # in this process: half the start-up time, and weights need no copy
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # all cores
        "VLLM_CPU_KVCACHE_SPACE": str(cfg.cpu_cache_gib),
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_NO_USAGE_STATS": "1",
    }.items():
        os.environ.setdefault(name, value)
    logging.getLogger("vllm").setLevel(logging.ERROR)  # while it is imported, before it reads the level above
    warnings.filterwarnings("ignore", category=FutureWarning, module="vllm")  # of old names of torch's that it looks up
