"""`reasoner doctor`: check a run, cheap checks first, and print each line as soon as it is known."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from data import Problem, load
from reasoner.config.resolve import Resolved, to_dict
from reasoner.config.schema import Config
from reasoner.console import log
from reasoner.doctor.budget import run_budget
from reasoner.doctor.dry_run import DryRun, StepRunner, StepTiming, dry_run, next_prompts
from reasoner.doctor.findings import Finding, Severity, format_finding, summary
from reasoner.doctor.memory import MemoryEstimate, disk_line, memory_line, memory_of, peak_memory
from reasoner.doctor.pace import Expected, expected, pace_lines
from reasoner.doctor.pass_rate import Answers, answer_lines, answers
from reasoner.doctor.questions import epoch_lines, gold_line, length_line
from reasoner.doctor.tokenization import token_lines
from reasoner.inference.factory import make_engine
from reasoner.inference.stop_tokens import end_token_ids
from reasoner.models.loading import context_length, load_meta_model, load_policy, load_tokenizer
from reasoner.progress import shown_progress
from reasoner.rl.algorithms import Algorithm
from reasoner.rollouts.control_rewards import shuffled_answers
from reasoner.rollouts.dataset import filter_prompts
from reasoner.rollouts.prompts import Template
from reasoner.runs.rollouts import versions, write_json
from reasoner.runtime import setup_torch
from reasoner.trainer.checkpoint import nearest
from reasoner.trainer.policy_trainer import PolicyTrainer
from reasoner.trainer.preflight import preflight
from reasoner.types import Prompt, SamplingParams
from verifiers import VerifierPool

_PROBED, _EACH = 8, 2  # prompts of a parity probe, completions of each
_GAPS = {"float32": (1e-3, 0.05), "bfloat16": (0.5, 3.0)}  # nats: rounding up to the first, a fault above the second
_SCRATCH = 2**26  # bytes written to measure the speed of the disk


def check_run(resolved: Resolved, run_dir: Path, *, problems: int, samples: int, json_file: Path | None) -> int:
    """Print the findings and proposed settings. Returns the exit status: 2 where something will not work, else 0.

    `problems`, `samples`: how many problems are sampled, and at most how many completions of each. ValueError for
    faults that keep the run from being checked at all.
    """
    began = time.monotonic()
    lines: list[Finding] = []
    figures: dict[str, Any] = {}
    try:
        for line in _lines(resolved.config, run_dir, problems, samples, figures):
            if resolved.note and not lines:
                log(resolved.note)
            lines.append(line)
            print(format_finding(line), flush=True)
    except (ValueError, OSError, MemoryError, RuntimeError) as error:
        if not lines:
            raise
        lines.append(Finding(Severity.NO, "stops here", f"{error}" or type(error).__name__))
        print(format_finding(lines[-1]))
    print(summary(lines), flush=True)
    seconds = time.monotonic() - began
    log(f"checked in {seconds:.0f} s")
    worst = max((line.mark for line in lines), key=list(Severity).index)
    if json_file:
        about = {"settings": to_dict(resolved.config), "versions": versions(), "seconds": seconds}
        write_json(json_file, {"status": worst, "lines": [asdict(line) for line in lines], **figures, **about})
    return 2 if worst is Severity.NO else 0


@dataclass(frozen=True, slots=True)
class _Run:
    """What training would set up for the run, without engine and learner."""

    cfg: Config
    run_dir: Path
    folder: Path  # of the model
    template: Template
    algorithm: Algorithm
    tokenizer: PreTrainedTokenizerBase
    device: torch.device
    context: int  # most tokens of prompt and completion
    prompts: list[Prompt]
    began: float

    @property
    def longest(self) -> int:
        """Tokens of the longest prompt."""
        return max(len(prompt.token_ids) for prompt in self.prompts)


def _lines(cfg: Config, run_dir: Path, problems: int, samples: int, figures: dict[str, Any]) -> Iterator[Finding]:
    """The lines of all checks: first those that need no engine. Fills `figures`, by subject."""
    began = time.monotonic()
    ready = preflight(cfg, run_dir)
    device, algorithm, template, folder = (
        setup_torch(threads=cfg.threads, seed=cfg.seed),
        ready.algorithm,
        ready.template,
        ready.model_folder,
    )
    assert folder is not None  # it has been downloaded
    line, good = gold_line(load(cfg.data.train), cfg)
    yield line
    tokenizer, shape = load_tokenizer(folder), load_meta_model(folder)
    context = context_length(shape)

    def render(problems: Sequence[Problem]) -> list[Prompt]:
        lengths = (cfg.sampling.max_tokens, cfg.data.max_prompt_tokens)
        return filter_prompts(
            problems, template, tokenizer, context=context, max_tokens=lengths[0], max_prompt_tokens=lengths[1]
        )

    run = _Run(cfg, run_dir, folder, template, algorithm, tokenizer, device, context, render(good), began)
    evaluation = render(load(cfg.validation.data, limit=cfg.validation.problems)) if cfg.validation.interval else []
    if cfg.eval.heldout_problems:
        evaluation += render(load(cfg.eval.heldout, limit=cfg.eval.heldout_problems))
    yield from token_lines(tokenizer, shape, template, run.prompts, end_token_ids(folder, tokenizer))
    line, figures["prompts"] = length_line(run.prompts, len(good), cfg, context)
    yield line
    yield from epoch_lines(run.prompts, evaluation, cfg)
    free, total = memory_of(device)
    need = MemoryEstimate(shape, algorithm, cfg, run.longest, device.type, total)
    figures["memory"] = need.parts() | {"peak": need.peak()}
    line = memory_line(need, free)
    yield line  # before any weights are loaded
    if line.mark is not Severity.NO:
        yield from _trial_lines(run, problems, samples, figures)


def _trial_lines(run: _Run, problems: int, samples: int, figures: dict[str, Any]) -> Iterator[Finding]:
    """The lines of the checks that sample with the engine and update a throwaway learner."""
    cfg, device, context = run.cfg, run.device, run.context
    policy = load_policy(run.folder, device=device)
    reference = load_policy(run.folder, device=device).requires_grad_(False) if cfg.algo.beta > 0 else None
    # Groups of the trial are no larger than the samples that the doctor may take of a question.
    trial_cfg = replace(cfg, algo=replace(cfg.algo, group_size=min(cfg.algo.group_size, samples)))
    learner = PolicyTrainer(policy, reference, run.algorithm, trial_cfg, run.tokenizer)
    sampling = SamplingParams(
        trial_cfg.algo.group_size,
        cfg.sampling.temperature,
        cfg.sampling.top_p,
        0,
        cfg.sampling.max_tokens,
        run.template.stop,
    )
    log("starting the engine")
    limits = (cfg.verify.workers, cfg.verify.seconds, cfg.verify.memory_mib)
    with (
        closing(make_engine(cfg.engine, run.folder, max_model_len=context, seed=cfg.seed)) as engine,
        VerifierPool(*limits) as pool,
        shown_progress() as progress,
    ):
        start = time.monotonic() - run.began
        engine.update_weights(learner.policy_state(), version=0)
        exchanged_gold = shuffled_answers(run.prompts, cfg.seed) if cfg.control == "wrong-gold" else {}
        learner.on_microbatch = progress.count
        bench = StepRunner(engine, pool, learner, run.tokenizer, sampling, exchanged_gold, trial_cfg, progress)
        coming = next_prompts(run.prompts, cfg, problems)
        probed = coming[-_PROBED:]
        progress.begin("parity")
        seconds, gap = bench.probe(probed, _EACH, cfg.sampling.max_tokens)
        yield _parity_line("at the start", gap, cfg)
        row_seconds, per_step = seconds / (len(probed) * _EACH), run_budget(cfg).per_step
        trial = dry_run(bench, coming, samples, row_seconds, log, per_step=per_step)
        yield _parity_line("after an update", trial.gap, cfg)
        peak = peak_memory(device)
    responses = answers(trial.groups, run.template, cfg)
    yield from answer_lines(responses, run.template, run.tokenizer, cfg, context - run.longest)
    yield _update_line(trial.learned)
    figures |= {"parity": gap, "parity_after_update": trial.gap}
    figures |= {"answers": responses.figures(), "update": trial.learned}
    figures["memory"]["measured_peak"] = peak
    yield Finding(Severity.OK, "in use", f"{peak / 2**20:,.0f} MiB of memory at most, libraries included")
    yield from _cost_lines(run, learner, trial, responses, start, figures)


def _cost_lines(
    run: _Run, learner: PolicyTrainer, trial: DryRun, responses: Answers, start: float, figures: dict[str, Any]
) -> Iterator[Finding]:
    """The lines on time and disk."""
    cfg = run.cfg
    share = responses.signal[cfg.algo.group_size].value
    disk = partial(disk_line, run.run_dir, learner, cfg, bytes_per_token=trial.rollout_bytes / max(1, trial.now.tokens))
    save = _write_seconds(nearest(run.run_dir), int(disk(tokens=0)[1]["checkpoint"]))

    def predict(pace: StepTiming) -> Expected:
        return expected(trial, pace, run.algorithm, cfg, start=start, save=save, share=share)

    now, later = predict(trial.now), predict(trial.later) if trial.later is not None else None
    yield from pace_lines(trial, now, later, cfg)
    longest = later or now
    tokens = longest.num_steps * cfg.data.prompts_per_step * cfg.algo.group_size * longest.length
    line, figures["disk"] = disk(tokens=tokens)
    yield line
    paces = {"now": trial.now, "later": trial.later, "bulk": trial.bulk}
    figures["trial"] = {name: asdict(pace) for name, pace in paces.items() if pace is not None}
    figures["time"] = {
        name: asdict(one) | {"total": one.total} for name, one in (("now", now), ("later", later)) if one is not None
    }


def _parity_line(when: str, gap: float, cfg: Config) -> Finding:
    rounding, fault = _GAPS[cfg.engine.dtype]
    text = f"log-probabilities of engine and learner differ by at most {gap:.1g} nats {when}"
    if gap <= rounding:
        return Finding(Severity.OK, "parity", text)
    if gap <= fault:
        return Finding(
            Severity.LOOK,
            "parity",
            text,
            "--algo.importance_sampling token" if cfg.algo.importance_sampling == "none" else "",
        )
    return Finding(Severity.NO, "parity", f"{text}: they are not the same model")


def _update_line(learned: dict[str, float]) -> Finding:
    norm = learned["grad_norm"]
    if learned["skipped_updates"]:
        return Finding(Severity.NO, "update", "the gradient of the first step is not finite")
    if not norm:
        return Finding(Severity.LOOK, "update", "the first step changes nothing: its gradient is 0")
    return Finding(
        Severity.OK, "update", f"the first step has a gradient of norm {norm:.2g}, entropy {learned['entropy']:.2g}"
    )


def _write_seconds(folder: Path, size: int) -> float:
    """Seconds that the disk takes to write `size` bytes. OSError where the folder cannot be written."""
    part = min(size, _SCRATCH)
    began = time.monotonic()
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(os.urandom(2**16) * (part // 2**16 + 1))
        file.flush()
        os.fsync(file.fileno())
    return (time.monotonic() - began) * size / part
