"""The report at the end of a run: the model before and after training on the held-out problems, as a table and as
example answers, and commands to continue with.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote

from reasoner.config.schema import Config
from reasoner.console import escape_controls
from reasoner.evals import eval_log
from reasoner.evals.manifest import make_manifest
from reasoner.evals.tables import Row, Ways, align_rows, detail_rows, percent
from reasoner.inference.model_spec import engine_identity
from reasoner.rollouts.prompts import load_template
from reasoner.tools.names import with_tools
from reasoner.types import EvalSample
from verifiers.reflection import reflect


def table(before: Ways, after: Ways) -> str:
    """Format the comparison of a model's evaluations on the held-out problems as plain text."""
    sampled = before["sampled"]
    heading = f"{sampled.num_problems} held-out problems x {sampled.num_samples} samples at temperature "
    heading += f"{sampled.temperature:g}, and greedy; 95 % intervals\n"
    return "\n".join([heading, *align_rows(_rows(before, after)), "", *align_rows(_cell_rows(before, after))])


def _rows(before: Ways, after: Ways) -> list[Row]:
    return [
        ("", "before", "after"),
        *((name, str(value), str(after["sampled"].metrics[name])) for name, value in before["sampled"].metrics.items()),
        ("greedy", str(before["greedy"].pass_at_1), str(after["greedy"].pass_at_1)),
        *detail_rows([before["sampled"], after["sampled"]]),
    ]


def _cell_rows(before: Ways, after: Ways) -> list[Row]:
    def cell(evals: Ways, name: str) -> str:
        return " / ".join(percent(evals[way].cells[name].value) for way in ("sampled", "greedy"))

    rows = [(name, cell(before, name), cell(after, name)) for name in before["sampled"].cells]
    return [("pass@1 / greedy by family and level", "before", "after"), *rows]


def example_answers(before: Ways, after: Ways, number: int = 3) -> str:
    """Format greedy answers to up to `number` problems, one per family, that were wrong before and are correct after.

    Answers with most self-corrections come first.
    """
    pairs = [
        (old, new)
        for old, new in zip(before["greedy"].samples, after["greedy"].samples, strict=True)
        if not old.scores[0].correct and new.scores[0].correct
    ]
    pairs.sort(key=lambda pair: -reflect(pair[1].responses[0].text).errors_caught)
    by_family: dict[str, tuple[EvalSample, EvalSample]] = {}
    for old, new in pairs:
        by_family.setdefault(old.problem.subject or "", (old, new))
    return "\n\n".join(
        f"{escape_controls(old.problem.question)}   (gold: {escape_controls(old.problem.answer)})\n"
        f"  before: {escape_controls(old.responses[0].text).strip()}\n"
        f"  after:  {escape_controls(new.responses[0].text).strip()}"
        for old, new in list(by_family.values())[:number]
    )


def write_eval(folder: Path, evals: Ways, cfg: Config, engine: str) -> None:
    """Write an evaluation folder as `reasoner eval` does, for `reasoner compare`."""
    spec, style = cfg.eval.heldout, cfg.prompt.style
    template = with_tools(load_template(style), cfg.tools, style)
    sampled = {"temperature": cfg.sampling.temperature, "top_p": 1.0, "max_tokens": cfg.sampling.max_tokens}
    manifest = make_manifest(
        model=folder.name,
        engine=engine_identity(replace(cfg.engine, name=engine), cfg.tools),
        prompt={"style": style, **asdict(template)},
        sampling={"sampled": sampled, "greedy": sampled | {"temperature": 0.0}},
        num_samples=cfg.eval.samples,
        seed=cfg.seed,
        ks=evals["sampled"].ks,
        data={spec: eval_log.data_entry([one.problem for one in evals["sampled"].samples])},
    )
    eval_log.write(folder, manifest, {spec: evals}, "")


def next_commands(run_dir: Path, cfg: Config) -> str:
    """Suggest commands to continue with after a run. They hold in the folder where it was started."""
    is_usual = run_dir.parent == Path("runs")
    name = quote(run_dir.name if is_usual else str(run_dir))
    app = "reasoner app" if is_usual else f"reasoner app {quote(str(run_dir.parent))}"
    data = "" if cfg.eval.heldout == Config().eval.heldout else f" --data {quote(cfg.eval.heldout)}"
    commands = {app: "show rollouts, curves and reflection in a browser"}
    files = {"metrics": f"{run_dir}/metrics.jsonl", "model": f"{run_dir}/checkpoints"}
    if cfg.stage == "reward-model":
        commands[f"reasoner reward-model eval {name} --data FILE"] = "evaluate it on other preferences"
        commands[f"reasoner train --model {quote(cfg.model)} --reward.model {name}"] = "reinforcement learning with it"
    else:
        evaluation = f"reasoner eval --model {name}{data} --pass@1 --cons@16"
        commands[evaluation] = "evaluate; other numbers of problems: --problems 600"
    if cfg.stage == "sft":
        commands[f"reasoner train --model {name}"] = "reinforcement learning from this model"
    elif cfg.stage == "rl":
        commands[f"reasoner train --resume {name} --steps {2 * cfg.steps}"] = "continue the training"
        files = {"rollouts of every step": f"{run_dir}/rollouts/*.parquet", **files}
    width = max(map(len, commands))
    lines = [f"  {command:<{width}}  # {about}" for command, about in commands.items()]
    return "\n".join(["next:", *lines, "  " + "   ".join(f"{what}: {where}" for what, where in files.items())])
