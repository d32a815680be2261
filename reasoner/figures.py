"""R1-Zero's figures of a run as one picture: accuracy, response length and self-checks against steps.

    python -m reasoner.figures runs/NAME docs/run.png
"""

from __future__ import annotations

import sys
from pathlib import Path

from reasoner.journal import read_metrics


def draw(run_dir: Path, out: Path) -> Path:
    """Four panels from the run's metrics. ValueError when the run has none yet."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    lines = read_metrics(run_dir)
    if not lines:
        raise ValueError(f"{run_dir} has no metrics yet")
    panels = {
        "right answers (share)": {
            "training problems, temperature 1": "correct",
            "selection problems, temperature 1": "eval/selection/pass@1",
            "selection problems, greedy": "eval/selection/greedy",
        },
        "response length (tokens)": {"mean of the step": "completions/mean_length"},
        "self-checks (share)": {"responses that check their working": "self_check", "wrong claims caught": "caught"},
        "form and signal (share)": {"well-formed": "format", "groups without a signal": "frac_reward_zero_std"},
    }
    figure, axes = pyplot.subplots(2, 2, figsize=(10, 6.4), constrained_layout=True)
    for axis, (title, curves) in zip(axes.flat, panels.items(), strict=True):
        for label, name in curves.items():
            points = [(line["step"] + 1, line[name]) for line in lines if name in line]
            style = "o-" if len(points) < len(lines) / 2 else "-"
            axis.plot(*zip(*points, strict=True), style, label=label, linewidth=1.6, markersize=4) if points else None
        axis.set_title(title, loc="left", fontsize=10)
        axis.set_xlabel("step", fontsize=9)
        axis.set_ylim(bottom=0, top=1.02 if "share" in title else None)
        axis.grid(alpha=0.25)
        axis.legend(fontsize=8, frameon=False)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)
    pyplot.close(figure)
    return out


if __name__ == "__main__":
    print(draw(Path(sys.argv[1]), Path(sys.argv[2])))
