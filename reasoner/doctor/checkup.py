"""`reasoner doctor`: check a run, cheap checks first, and print each finding as soon as it is known."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from data import load
from reasoner.config.resolve import RunSettings, to_dict
from reasoner.config.schema import Config
from reasoner.console import log, print_result
from reasoner.doctor.cost import cost_findings
from reasoner.doctor.findings import Finding, Severity, summary
from reasoner.doctor.memory import MemoryEstimate, memory_of, peak_memory
from reasoner.doctor.memory_advice import memory_finding, processes_finding
from reasoner.doctor.pass_rate import response_findings, response_stats
from reasoner.doctor.problems import check_epochs, check_gold_answers, check_prompt_lengths
from reasoner.doctor.tokenization import check_tokenizer
from reasoner.doctor.trial_step import StepRunner, next_prompts, run_trial_step
from reasoner.inference.sampling import end_token_ids
from reasoner.models.loading import load_meta_model
from reasoner.progress import shown_progress
from reasoner.rl.algorithms import sampler_correction
from reasoner.runs.json_files import write_json
from reasoner.runs.run_start import versions
from reasoner.trainer.checkpoint import check_saves
from reasoner.trainer.components import build_trainer, open_generator, with_teacher_prompts
from reasoner.trainer.setup import RunContext, evaluation_problems, load_context
from reasoner.trainer.sync_certificate import certify_sync
from reasoner.types import Prompt

_PROBE_PROMPTS, _PROBE_SAMPLES = 8, 2  # of a parity probe: prompts, and completions of each
# Nats: rounding up to the first, a fault above the second. A token of 4,000 of SmolLM2-135M in bfloat16 rounds by 1.1.
_LOGPROB_LIMITS = {"float32": (1e-3, 0.05), "bfloat16": (1.5, 3.0), "fp8": (2.0, 6.0)}


def report(resolved: RunSettings, checks: Iterator[Finding], json_file: Path | None) -> int:
    """Print the findings of the checks and the settings that they suggest, and write them with their measurements.
    Returns the exit status: 2 with a finding that is an error, else 0. ValueError for faults that keep the run from
    being checked at all.
    """
    start = time.monotonic()
    findings: list[Finding] = []
    try:
        for finding in checks:
            if resolved.note and not findings:
                log(resolved.note)
            findings.append(finding)
            print_result(str(finding))
    except (ValueError, OSError, MemoryError, RuntimeError) as error:
        if not findings:
            raise
        findings.append(Finding(Severity.ERROR, "stopped", f"{error}" or type(error).__name__))
        print_result(str(findings[-1]))
    print_result(summary(findings))
    seconds = time.monotonic() - start
    log(f"checked in {seconds:.0f} s")
    status = max((finding.severity for finding in findings), key=list(Severity).index)
    if json_file:
        content: dict[str, Any] = {"status": status, "findings": [asdict(finding) for finding in findings]}
        for line in content["findings"]:
            content |= line.pop("measurements")
        content |= {"settings": to_dict(resolved.config), "versions": versions(), "seconds": seconds}
        write_json(json_file, content)
    return 2 if status is Severity.ERROR else 0


def check_run(resolved: RunSettings, run_dir: Path, *, problems: int, samples: int) -> Iterator[Finding]:
    """The findings of all checks: first those that need no engine. `problems`, `samples`: how many problems are
    sampled, and at most how many completions of each.
    """
    cfg = resolved.config
    finding, gradable = check_gold_answers(load(cfg.data.train, memory_mib=cfg.verify.memory_mib), cfg)
    yield finding
    run = load_context(resolved, run_dir)
    tokenizer, template, shape = run.tokenizer, run.template, load_meta_model(run.base)
    prompts = with_teacher_prompts(run.render(gradable), cfg, template, tokenizer)
    evaluation = [prompt for problems in evaluation_problems(cfg) for prompt in run.render(problems)]
    yield from check_tokenizer(tokenizer, shape, template, prompts, end_token_ids(run.base, tokenizer))
    yield check_prompt_lengths(prompts, len(gradable), cfg, run.context)
    yield from check_epochs(prompts, evaluation, cfg)
    free, total = memory_of(run.device)
    estimate = MemoryEstimate(shape, cfg, _longest(prompts), run.device.type, total)
    memory = estimate.parts() | {"peak": estimate.peak()}
    finding = replace(memory_finding(estimate, free), measurements={"memory": memory})
    yield finding  # before any weights are loaded
    if cfg.processes > 1:
        yield processes_finding(estimate, free)
    if finding.severity is not Severity.ERROR:
        yield from _check_trial_step(run, prompts, problems, samples, memory)


def _longest(prompts: Sequence[Prompt]) -> int:
    """Tokens of the longest prompt."""
    return max(len(prompt.token_ids) for prompt in prompts)


def _check_trial_step(
    run: RunContext, prompts: Sequence[Prompt], problems: int, samples: int, memory: Mapping[str, int]
) -> Iterator[Finding]:
    """The findings of the checks that sample with the engine and update a throwaway policy. `memory`: as predicted."""
    cfg, template = run.cfg, run.template
    # Groups of the trial step are no larger than the samples that the doctor may take of a problem, and the first step
    # updates the policy.
    algo = replace(cfg.algo, group_size=min(cfg.algo.group_size, samples))
    trial_cfg = replace(cfg, algo=algo, critic=replace(cfg.critic, warmup_steps=0))
    trainer = build_trainer(trial_cfg, run.tokenizer, start_from=run.base, base=run.base, device=run.device)
    check_saves(run.run_dir, trainer, run.tokenizer)
    log("starting the engine")
    generation = open_generator(trial_cfg, prompts, template, trainer, model_folder=run.base)
    with generation as generator, shown_progress() as progress:
        generator.progress = trainer.progress = progress
        runner = StepRunner(generator, trainer, trial_cfg)
        yield Finding(Severity.OK, "weight sync", str(certify_sync(trainer, generator)))
        coming = next_prompts(prompts, cfg, problems)
        probe_prompts = coming[-_PROBE_PROMPTS:]
        progress.begin("parity")
        seconds, logprob_diff = runner.parity_probe(probe_prompts, _PROBE_SAMPLES, cfg.sampling.max_tokens)
        yield _parity_finding("at the start", logprob_diff, cfg)
        seconds_each = seconds / (len(probe_prompts) * _PROBE_SAMPLES)
        trial = run_trial_step(runner, coming, samples, seconds_each)
        yield _parity_finding("after an update", trial.logprob_diff, cfg)
        peak = peak_memory(run.device)
    stats = response_stats(trial.groups, template, cfg)
    yield from response_findings(stats, template, run.tokenizer, cfg, run.context - _longest(prompts))
    yield _update_finding(trial.update_metrics)
    measurements = {"parity": logprob_diff, "parity_after_update": trial.logprob_diff, "responses": asdict(stats)}
    measurements |= {"update": trial.update_metrics, "memory": {**memory, "measured_peak": peak}}
    text = f"{peak / 2**20:,.0f} MiB at most, libraries included"
    yield Finding(Severity.OK, "peak memory", text, measurements=measurements)
    informative_share = stats.informative_share[stats.group_size].value
    yield from cost_findings(run, trainer, trial, informative_share=informative_share)


def _parity_finding(when: str, logprob_diff: float, cfg: Config) -> Finding:
    rounding, fault = _LOGPROB_LIMITS[cfg.engine.dtype]
    text = f"log-probabilities of engine and trainer differ by at most {logprob_diff:.1g} nats {when}"
    if logprob_diff <= rounding:
        return Finding(Severity.OK, "parity", text)
    if logprob_diff <= fault:
        suggestion = "--algo.importance_sampling token" if sampler_correction(cfg) == "none" else ""
        return Finding(Severity.WARNING, "parity", text, suggestion)
    return Finding(Severity.ERROR, "parity", f"{text}: they do not hold the same model")


def _update_finding(metrics: dict[str, float]) -> Finding:
    norm = metrics["grad_norm"]
    if metrics["skipped_updates"]:
        return Finding(Severity.ERROR, "update", "the gradient of the first step is not finite")
    if not norm:
        return Finding(Severity.WARNING, "update", "the first step changes nothing: its gradient is 0")
    text = f"the first step has a gradient of norm {norm:.2g} and an entropy of {metrics['entropy']:.2g} nats"
    return Finding(Severity.OK, "update", text)
