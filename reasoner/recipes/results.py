"""The results of a stage's run, and the table of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reasoner.api.training import Run
from reasoner.evals.tables import align_rows, interval
from reasoner.recipes.stages import Stage
from reasoner.runs.json_files import read_object
from reasoner.runs.metrics import read_heldout

Results = Mapping[str, Any]


def read_results(run_dir: Path) -> dict[str, Any]:
    """What a run has of these: `minutes` of sampling or training, `sampled_tokens`, `examples` or `pairs` to train on,
    `accuracy` of a reward model, and on the held-out problems `pass@1`, `greedy`, `well_formed` and `tokens` of a
    response, also as `before` the run.
    """
    run, results = Run(run_dir), dict[str, Any]()
    if metrics := run.metrics:
        results["minutes"] = metrics[-1].get("time/run", 0.0) / 60
        if any((run_dir / "rollouts").glob("*.parquet")):
            results["sampled_tokens"] = int(metrics[-1]["num_tokens"])
    contents = read_object(run_dir / "data.json")
    results |= {name: contents[key] for name in ("examples", "pairs") if (key := f"training_{name}") in contents}
    if accuracy := (run.report or {}).get("accuracy"):
        results["accuracy"] = accuracy
    if heldout := read_heldout(run_dir):
        results |= _figures(heldout["after"]) | {"before": _figures(heldout["before"])}
    return results


def _figures(evals: Mapping[str, Any]) -> dict[str, Any]:
    """Results on the held-out problems, before or after a run."""
    sampled, greedy = evals["sampled"], evals["greedy"]
    figures = {"pass@1": sampled["metrics"]["pass@1"], "greedy": greedy["metrics"]["pass@1"]}
    figures |= {"well_formed": sampled["well_formed"], "tokens": sampled["health"]["tokens"]}
    return {name: value for name, value in figures.items() if value is not None}


def sampled_tokens(stages: Sequence[Stage]) -> int:
    """The tokens that the stages have sampled, controls left out."""
    return sum((stage.results or {}).get("sampled_tokens", 0) for stage in stages if not stage.is_control)


def table(stages: Sequence[Stage]) -> str:
    """The table of a pipeline: a row for each run and each model that the recipe starts from, with the results on the
    held-out problems and their 95 % intervals; tokens and minutes of all stages but controls in the last row.
    """
    rows = [["", "sampled tokens", "minutes", "pass@1, %", "greedy, %", "response tokens", "learnt from"]]
    known = {stage.output for stage in stages}  # models that have a row, or get one
    for stage in (one for one in stages if one.run):
        model, results = stage.arguments["model"], stage.results or {}
        if model not in known and "before" in results:
            known.add(model)
            rows.append([Path(model).name, "", "", *_cells(results["before"]), ""])
        rows.append([stage.name, *_costs(results), *_cells(results), ", ".join(_sources(results))])
    minutes = sum((stage.results or {}).get("minutes", 0) for stage in stages if not stage.is_control)
    costs = _costs({"sampled_tokens": sampled_tokens(stages), "minutes": minutes})
    return "\n".join(align_rows([*rows, ["all stages but controls", *costs, "", "", "", ""]]))


def _costs(results: Results) -> list[str]:
    return [f"{results.get('sampled_tokens', 0):,.0f}", f"{results.get('minutes', 0):.1f}"]


def _cells(results: Results) -> list[str]:
    """pass@1, greedy and tokens, empty where there are none."""
    cells = [interval(results[name]) if name in results else "" for name in ("pass@1", "greedy")]
    return [*cells, f"{results['tokens']:.1f}" if "tokens" in results else ""]


def _sources(results: Results) -> Iterator[str]:
    """What a run has learnt from, and the accuracy of a reward model."""
    for name in ("examples", "pairs"):
        if name in results:
            yield f"{results[name]:,.0f} {name}"
    if "accuracy" in results:
        yield f"accuracy {interval(results['accuracy'])} %"
