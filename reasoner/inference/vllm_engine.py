"""Sampling engine on vLLM, in this process: on a CPU, or on the GPU that it shares with the trainer."""

from __future__ import annotations

import ctypes
import gc
import logging
import mmap
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from zlib import crc32

import torch
from torch import Tensor

from reasoner.config.schema import EngineConfig
from reasoner.distributed.world import is_connected
from reasoner.inference.sampling import (
    Groups,
    Sampled,
    StopTexts,
    end_token_ids,
    max_completion_tokens,
    sample_tokens,
    stop_token_ids,
)
from reasoner.inference.vllm_model import (
    AdapterSlot,
    folder_rank,
    forget_layers,
    is_adapter_state,
    known_weights,
    lora_settings,
    mask_ids,
    separate_classes,
    stored_weights,
)
from reasoner.models.checksums import check_model_files
from reasoner.models.loading import load_meta_model, load_tokenizer, num_ids
from reasoner.models.resolve import full_folder
from reasoner.models.saving import as_saved
from reasoner.progress import OnDecodeStep
from reasoner.runtime import gc_paused, release_free_memory
from reasoner.types import Completion, Finish, OnGroupDone, Prompt, SamplingParams

if TYPE_CHECKING:
    from vllm import LLM, CompletionOutput, RequestOutput
    from vllm import SamplingParams as VllmSamplingParams
    from vllm.v1.engine import EngineCoreOutput
    from vllm.v1.engine.llm_engine import LLMEngine

_FINISH: dict[str, Finish] = {"stop": "stop", "length": "length"}  # every other reason is "abort"
# Of vLLM's ways to quantise what it loads the closest one, and one that its CPU build has.
_FP8: Any = "fp8_per_channel"
_MAX_ROWS = 512  # completions in flight; the rest wait


class VllmEngine:
    """One vLLM engine for the whole run; updated weights are passed in memory."""

    name = "vllm"

    def __init__(
        self, folder: Path, cfg: EngineConfig, *, max_model_len: int, seed: int, adapter_rank: int | None = None
    ) -> None:
        _set_environment(cfg)
        threads, set_num_threads = torch.get_num_threads(), torch.set_num_threads
        with gc_paused():
            llm = _import_vllm()
        full = full_folder(folder)
        check_model_files(full)
        self._tokenizer = load_tokenizer(folder)
        self._end_ids = end_token_ids(folder, self._tokenizer)
        self._stop_texts = StopTexts(self._tokenizer)
        self._sleeps, self._has_weights = torch.cuda.is_available(), True
        on_gpu = {"gpu_memory_utilization": cfg.gpu_memory, "enable_sleep_mode": True}
        on_cpu = {"block_size": 32}  # with the default of 128 no shorter prompt is cached
        # One of several ranks: an engine of its own, on the device of its local rank; the default is device 0 for all.
        has_ranks = is_connected()
        on_rank: dict[str, Any] = {"distributed_executor_backend": "external_launcher"} if has_ranks else {}
        if has_ranks:
            _keep_groups()
        if adapter_rank is None:
            adapter_rank = folder_rank(folder)
        # vLLM's kernels for adapters on a GPU take none in float32; merged weights are exact in it.
        self.accepts_adapter = adapter_rank > 0 and not (self._sleeps and cfg.dtype == "float32")
        self._adapter = AdapterSlot() if self.accepts_adapter else None
        with separate_classes():
            self._llm = llm(
                str(full),
                dtype=cast(Any, "bfloat16" if cfg.dtype == "fp8" else cfg.dtype),
                quantization=_FP8 if cfg.dtype == "fp8" else None,
                max_model_len=max_model_len,
                max_num_seqs=_MAX_ROWS,
                enforce_eager=not self._sleeps,
                enable_prefix_caching=True,
                logprobs_mode="processed_logprobs",
                seed=seed,
                disable_log_stats=True,
                use_tqdm_on_load=False,
                **(on_gpu if self._sleeps else on_cpu),
                **on_rank,
                **(lora_settings(adapter_rank) if self.accepts_adapter else {}),
            )
        self._llm.apply_model(partial(mask_ids, num_ids=num_ids(self._tokenizer)))
        # The CPU worker replaces torch.set_num_threads by a function that does nothing; the trainer needs the original.
        torch.set_num_threads = set_num_threads
        torch.set_num_threads(threads)
        self._has_own_sampler = not self._sleeps
        if self._has_own_sampler:
            install_sampler(_runner(self._llm))
            _release_kv_cache(self._llm)
        self._max_model_len = max_model_len
        self._meta_model = load_meta_model(full)  # knows the names of its file
        self._version = 0
        if full != folder:
            self.update_weights(stored_weights(folder, as_adapter=self.accepts_adapter), version=0)

    def generate(
        self,
        prompts: Sequence[Prompt],
        sampling: SamplingParams,
        seeds: Sequence[Sequence[int]],
        on_group_done: OnGroupDone | None = None,
        on_decode_step: OnDecodeStep | None = None,
    ) -> list[tuple[Completion, ...]]:
        if not any(prompt.num_completed for prompt in prompts):  # later turns find the earlier ones in the cache
            self._empty_prefix_cache()
        stop_ids, stop_texts = stop_token_ids(sampling, self._tokenizer)
        limits = [max_completion_tokens(prompt, sampling, self._max_model_len) for prompt in prompts]
        engine = self._llm.llm_engine
        adapter = None if self._adapter is None else self._adapter.request
        is_complete = partial(self._stop_texts.are_complete, stop_texts)
        requests: dict[str, tuple[int, int]] = {}  # request id -> (index of its prompt, index of its seed)
        groups = Groups(seeds, self._version, self._end_ids, stop_texts, self._tokenizer, on_group_done)

        try:
            for place, (prompt, limit, own) in enumerate(zip(prompts, limits, seeds, strict=True)):
                for number, seed in enumerate(own):
                    requests[name := f"{place}-{number}"] = (place, number)
                    params = self._params(sampling, seed, limit, stop_ids)
                    ids = list(prompt.token_ids)
                    own_name = engine.add_request(name, {"prompt_token_ids": ids}, params, lora_request=adapter)
                    state = engine.output_processor.request_states[own_name]
                    state.detokenizer = state.logprobs_processor = cast(Any, SampledTokens(is_complete))
            while engine.has_unfinished_requests():
                for output in engine.step():
                    groups.add(*requests[output.request_id], _sampled(cast("RequestOutput", output).outputs[0]))
                if on_decode_step is not None:
                    on_decode_step(lambda: _counts(engine, groups))
        except BaseException:
            engine.abort_request(list(requests))
            raise
        return groups.completions

    def _params(self, sampling: SamplingParams, seed: int, limit: int, stop_ids: Sequence[int]) -> VllmSamplingParams:
        from vllm import SamplingParams as VllmSamplingParams
        from vllm.sampling_params import RequestOutputKind

        return VllmSamplingParams(
            n=1,
            seed=None if self._has_own_sampler else seed,
            extra_args={"seed": seed} if self._has_own_sampler else None,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=limit,
            stop_token_ids=sorted({*stop_ids, *self._end_ids}),
            detokenize=False,
            logprobs=0,  # of the sampled token only
            output_kind=RequestOutputKind.FINAL_ONLY,
        )

    def update_weights(self, named: Iterable[tuple[str, Tensor]], version: int) -> None:
        named = iter(named)  # one tensor at a time: those of a merged adapter are computed as they are taken
        first = list(islice(named, 1))
        if self._adapter is not None:
            self._adapter.clear(self._llm)
        if is_adapter_state(first):
            if self._adapter is None:
                raise ValueError("this engine was created without adapters (adapter_rank)")
            self._adapter.fill([*first, *named])
        else:
            saved = as_saved(self._meta_model, chain(first, named))
            weights = self._llm.apply_model(partial(known_weights, named=saved))[0]
            self._llm.collective_rpc("reload_weights", kwargs={"weights_iterator": weights})
            if not self._has_weights:
                self._llm.wake_up(["kv_cache"])  # after the weights: both need not fit beside what they are loaded from
                self._has_weights = True
        self._version = version

    def _empty_prefix_cache(self) -> None:
        """Forget all prefixes: those of older weights are wrong, and others change the last digits of the
        log-probabilities. RuntimeError where vLLM keeps them because a request still holds some.
        """
        if self._llm.reset_prefix_cache() is False:
            raise RuntimeError("vLLM did not empty its prefix cache: an earlier request still holds a part of it")

    def sleep(self, *, keeps_weights: bool) -> None:
        if self._sleeps:
            # Weights that are kept are copied to the computer's memory and back. Those under an adapter are not sent.
            self._has_weights = keeps_weights or self.accepts_adapter
            self._llm.sleep(level=1 if self._has_weights else 2)
        else:
            self._empty_prefix_cache()
            _release_kv_cache(self._llm)

    def wake_up(self) -> None:
        if self._sleeps:
            torch.cuda.empty_cache()  # memory that the trainer freed and torch still holds
            self._llm.wake_up(None if self._has_weights else ["weights"])
        else:
            release_free_memory()  # the same, before the key-value cache grows

    def close(self) -> None:
        self._llm.apply_model(forget_layers)
        del self._llm
        if self._adapter is not None:
            self._adapter.close()
        gc.collect()


class SampledTokens:
    """What is sampled for a request, in place of vLLM's detokenizer and its record of log-probabilities.

    Those build texts and ranks that nobody reads: 22 microseconds a token with a stop text, where this takes 2.5.
    """

    prompt_logprobs = prompt_token_id_logprobs = cumulative_logprob = None

    def __init__(self, is_complete: Callable[[list[int]], bool]) -> None:
        self.output_token_ids: list[int] = []
        self.logprobs: list[float] = []
        self._is_complete = is_complete

    def update(self, new_token_ids: list[int], stop_terminated: bool) -> str | None:
        """Add tokens. Returns a text if a stop text is complete: vLLM ends the request then."""
        self.output_token_ids += new_token_ids
        return "a stop text" if new_token_ids and self._is_complete(self.output_token_ids) else None

    def update_from_output(self, output: EngineCoreOutput) -> None:
        if output.new_logprobs is not None:
            self.logprobs += output.new_logprobs.logprobs[:, 0].tolist()

    def num_output_tokens(self) -> int:
        return len(self.output_token_ids)

    def get_next_output_text(self, finished: bool, delta: bool) -> str:
        return ""


def _sampled(output: CompletionOutput) -> Sampled:
    return output.token_ids, cast(list[float], output.logprobs), _FINISH.get(output.finish_reason or "", "abort")


def _import_vllm() -> type[LLM]:
    """Import vLLM, in a thread: it keeps an error of an optional import (torchcodec), and with it all frames below,
    which would hold the first trainer of the process for ever.
    """
    context = copy_context()  # of torch's settings, some of which the import changes

    def import_llm() -> type[LLM]:
        from vllm import LLM

        return LLM

    with ThreadPoolExecutor(1) as thread:
        llm = thread.submit(context.run, import_llm).result()
    for variable, value in context.items():
        variable.set(value)
    return llm


def _counts(engine: LLMEngine, groups: Groups) -> tuple[int, int]:
    """Numbers of finished completions, and of tokens sampled so far."""
    running = [state.detokenizer for state in engine.output_processor.request_states.values()]
    num_running = sum(one.num_output_tokens() for one in running if one is not None)
    return groups.num_ended, groups.num_tokens + num_running


def _keep_groups() -> None:
    """Let vLLM leave the groups of the ranks as they are when an engine is freed. It would destroy all groups of the
    process, which over NCCL waits for the other ranks: one that has failed would never end.
    """
    from vllm.v1.engine import core

    cast(Any, core).cleanup_dist_env_and_memory = lambda: None


def _runner(llm: LLM) -> Any:
    """vLLM's model runner on a CPU. This reads vLLM's internals: constraints.txt pins its version."""
    return llm.llm_engine.model_executor.driver_worker.worker.model_runner


def _release_kv_cache(llm: LLM) -> None:
    """Return the memory of vLLM's key-value cache to the system. Pages come back, as zeros, when used."""
    storage = _runner(llm).kv_caches[0].untyped_storage()
    start = -(-storage.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
    size = (storage.data_ptr() + storage.nbytes() - start) // mmap.PAGESIZE * mmap.PAGESIZE
    ctypes.CDLL(None).madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), mmap.MADV_DONTNEED)


def install_sampler(runner: Any) -> None:
    """Replace the CPU sampler of vLLM's model runner, which has a generator object per request, by sampling with (seed,
    position). The seed is the extra argument "seed" of a request, else its own, else a hash of its name.

    The generators cost 6 % of the sampling time of a small model, and vLLM 0.32 stops with "CPU Generator does not use
    offset" when a prompt with one is computed in two parts. The ranks of the sampled tokens are not needed and are
    left out: vLLM compiles a kernel for them at the first sample.
    """
    from vllm.v1.sample import sampler
    from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p

    def forward(
        logits: Tensor, generators: object, top_k: Tensor | None, top_p: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """[N, V] logits after temperature -> [N] sampled tokens, [N, V] processed log-probabilities."""
        log_softmax = apply_top_k_top_p(logits, top_k, top_p).log_softmax(dim=-1)
        rows = runner.input_batch.req_ids[: len(logits)]
        seeds = [_seed(row, runner.requests[row].sampling_params) for row in rows]
        return sample_tokens(log_softmax, seeds, runner.input_batch.num_tokens_no_spec[: len(logits)]), log_softmax

    runner.sampler.topk_topp_sampler.forward = forward
    cast(Any, sampler).batched_count_greater_than = lambda logprobs, _: torch.zeros(len(logprobs), dtype=torch.int64)


def _seed(request: str, params: VllmSamplingParams) -> int:
    """The seed of a request. On a server there are requests of other programs, which may have none."""
    extra = params.extra_args or {}
    if "seed" in extra:
        return int(extra["seed"])
    return crc32(request.encode()) if params.seed is None else params.seed % 2**64


def _set_environment(cfg: EngineConfig) -> None:
    """Set the environment variables that vLLM reads on import, except those that the user has set."""
    for name, value in {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # in this process: half the start-up time, no copy of the weights
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # all cores
        "VLLM_CPU_KVCACHE_SPACE": str(cfg.cpu_cache_gib),
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_NO_USAGE_STATS": "1",
        # vLLM's attention in float32 on a GPU is a kernel of Triton's, whose products are in TF32 by default.
        **({"TRITON_F32_DEFAULT": "ieee"} if cfg.dtype == "float32" and torch.cuda.is_available() else {}),
    }.items():
        os.environ.setdefault(name, value)
    logging.getLogger("vllm").setLevel(logging.ERROR)  # for the import, before vLLM reads the level above
    warnings.filterwarnings("ignore", category=FutureWarning, module="vllm")  # of deprecated torch names that vLLM uses
