"""vLLM in this process: on a CPU, or on the GPU that it shares with the learner."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from reasoner.config import EngineConfig
from reasoner.engines.text import end_token_ids, stop_token_ids, texts
from reasoner.models import load_tokenizer
from reasoner.types import Completion, Prompt, Sampling

_MAX_ROWS = 512  # completions in flight; the rest wait their turn


class VllmEngine:
    """One engine for the life of a run; it takes the learner's weights in memory."""

    name = "vllm"

    def __init__(self, folder: Path, cfg: EngineConfig, *, max_model_len: int, seed: int) -> None:
        _environment(cfg)
        threads = torch.get_num_threads()
        from vllm import LLM

        self._tokenizer = load_tokenizer(folder)
        self._ends = end_token_ids(folder, self._tokenizer)
        self._sleeps = torch.cuda.is_available()
        on_gpu = {"gpu_memory_utilization": cfg.gpu_memory, "enable_sleep_mode": True} if self._sleeps else {}
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
            **on_gpu,
        )
        torch.set_num_threads(threads)  # the learner keeps the threads it had
        self._version = 0

    def sample(
        self, prompts: Sequence[Prompt], sampling: Sampling, seeds: Sequence[Sequence[int]]
    ) -> list[tuple[Completion, ...]]:
        from vllm import SamplingParams

        stop_ids, stop_texts = stop_token_ids(sampling, self._tokenizer)
        requests = [
            (
                {"prompt_token_ids": list(prompt.token_ids)},
                SamplingParams(
                    n=1,
                    seed=seed,
                    temperature=sampling.temperature,
                    top_p=sampling.top_p,
                    top_k=sampling.top_k,
                    max_tokens=sampling.max_tokens,
                    stop_token_ids=sorted({*stop_ids, *self._ends}),
                    stop=stop_texts or None,
                    include_stop_str_in_output=True,
                    skip_special_tokens=False,
                    detokenize=bool(stop_texts),
                    logprobs=0,
                ),
            )
            for prompt, own in zip(prompts, seeds, strict=True)
            for seed in own
        ]
        outputs = self._llm.generate([r[0] for r in requests], [r[1] for r in requests], use_tqdm=False)
        drawn = [output.outputs[0] for output in outputs]
        decoded = iter(texts([list(d.token_ids) for d in drawn], self._ends, self._tokenizer))
        completions = iter(
            Completion(
                text=next(decoded),
                token_ids=tuple(d.token_ids),
                logprobs=tuple(step[token].logprob for step, token in zip(d.logprobs, d.token_ids, strict=True)),
                finish="stop" if d.finish_reason == "stop" else "length" if d.finish_reason == "length" else "abort",
                policy_version=self._version,
            )
            for d in drawn
        )
        return [tuple(next(completions) for _ in own) for own in seeds]

    def load_weights(self, named: Iterable[tuple[str, Tensor]], version: int) -> None:
        self._llm.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(list(named))})
        self._llm.reset_prefix_cache()
        self._version = version

    def pause(self) -> None:
        if self._sleeps:
            self._llm.sleep(level=1)

    def resume(self) -> None:
        if self._sleeps:
            self._llm.wake_up()

    def close(self) -> None:
        del self._llm
        gc.collect()


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
