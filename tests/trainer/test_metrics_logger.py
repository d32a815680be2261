"""The log of a run: complete and finite lines, cut back when the run is resumed, and what the console shows."""

import time
from io import StringIO

from rich.console import Console

from reasoner.console import escape_controls
from reasoner.runs.metric_names import METRICS, TIMES
from reasoner.runs.metrics import read_evals, read_metrics, truncate_logs
from reasoner.trainer.metrics_logger import MetricsLogger

LINE = {
    "reward/mean": 0.5, "correct": 0.4, "well_formed": 0.9, "completions/mean_length": 30.0,
    "completions/clipped_ratio": 0.0, "frac_reward_zero_std": 0.25,
}  # fmt: skip
TIMED = {"tokens_per_second": 900.0, "time/step": 2.0}


def written(folder, steps, start=0):
    with MetricsLogger(folder, steps=9, start=start) as logger:
        for step in steps:
            logger.write({"step": step, **LINE}, TIMED)
            sampled = {"metrics": {"x": {"value": step}}, "problems": 2}
            logger.log_validation(step + 1, sampled=sampled, greedy={"metrics": {"pass@1": {"value": 0}}})


def test_logger_writes_a_line_per_step_and_plain_console_lines(tmp_path, capsys):
    written(tmp_path, [0, 1])
    assert [line["step"] for line in read_metrics(tmp_path)] == [0, 1]
    assert read_evals(tmp_path)[1]["sampled"] == {"metrics": {"x": {"value": 1}}, "problems": 2}
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 2 and "\x1b" not in shown[1]
    figures = "reward 0.500  correct 40%  well-formed 90%  tokens 30  truncated 0.0%  zero-variance 25%"
    assert shown[1].startswith(f"step 1 (2/9 done)  {figures}  ")
    assert len(shown[1]) <= 120 and not shown[1].count("correct completion")


def test_first_step_without_a_correct_completion_says_once_what_to_look_at(tmp_path, capsys):
    with MetricsLogger(tmp_path, steps=9, start=0) as logger:
        for step in range(3):
            logger.write({"step": step, **LINE, "correct": 0.0, "completions/clipped_ratio": 1.0}, TIMED)
    errors = capsys.readouterr().err
    assert errors.count("truncated 100%") == 3
    assert [errors.count(word) for word in ("prompt.style", "sampling.max_tokens", "reasoner doctor")] == [1, 1, 1]


def test_a_resumed_run_drops_the_lines_of_repeated_steps(tmp_path):
    written(tmp_path, [0, 1, 2])
    truncate_logs(tmp_path, 2)
    written(tmp_path, [2], start=2)
    assert [line["step"] for line in read_metrics(tmp_path)] == [0, 1, 2]
    assert [line["step"] for line in read_evals(tmp_path)] == [1, 2, 3]


def test_a_non_finite_value_is_left_out_of_the_file(tmp_path):
    with MetricsLogger(tmp_path, steps=1, start=0) as logger:
        logger.write({"step": 0, **LINE, "grad_norm": float("nan"), "loss": float("inf")}, TIMED)
    (line,) = read_metrics(tmp_path)
    assert line.pop("time/run") >= 0 and line == {"step": 0, **LINE, **TIMED}


def test_times_are_not_in_the_metrics_file(tmp_path):
    written(tmp_path, [0, 1])
    assert not METRICS.keys() & TIMES.keys()
    assert not any(name in (tmp_path / "metrics.jsonl").read_text() for name in TIMES)
    assert [line["time/step"] for line in read_metrics(tmp_path)] == [2.0, 2.0]


def test_control_characters_of_a_completion_are_not_printed():
    assert escape_controls("a\x1b[2Jb\r\x07\nc\u202ed") == "a\\x1b[2Jb\\r\\x07\nc\\u202ed"


def test_time_left_follows_the_limit_that_ends_the_run(tmp_path, capsys, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with MetricsLogger(tmp_path, steps=1000, max_tokens=4000, start=0) as logger:
        monkeypatch.setattr(time, "monotonic", lambda: now + 60)
        logger.write({"step": 0, **LINE, "num_tokens": 1000}, TIMED)
    with MetricsLogger(tmp_path, steps=2, max_tokens=40_000, start=1) as logger:
        resumed = now + 60
        monkeypatch.setattr(time, "monotonic", lambda: resumed + 30)
        logger.write({"step": 1, **LINE, "num_tokens": 2000}, TIMED)
    first, second = capsys.readouterr().err.splitlines()
    assert "(25% of 4,000 tokens done)" in first and first.endswith("3:00 left")
    assert "(2/2 done)" in second and second.endswith("0:00 left")


def test_panel_shows_progress_within_a_step(tmp_path):
    """On a terminal as wide as one: the very bytes that it would get."""
    with MetricsLogger(tmp_path, steps=9, start=0) as logger:
        logger.progress.begin("step 1/9")
        logger.progress.count("learnt", 24, 256)
        before = panel_text(logger)
        logger.write({"step": 0, **LINE}, TIMED, example="so \x1b[2J")
        logger.progress.begin("step 2/9")
        after = panel_text(logger)
    assert before.strip() == "step 1/9: learnt 24/256"
    assert "900 tok/s" in after and "1/9" in after and "learnt" not in after


def test_a_resumed_run_has_a_panel_from_its_first_step_on(tmp_path):
    written(tmp_path, [0])
    with MetricsLogger(tmp_path, steps=9, start=1) as logger:
        assert not panel_text(logger).strip()  # of its speed nothing is known yet
        logger.write({"step": 1, **LINE}, TIMED)
        assert "2/9" in panel_text(logger)


def panel_text(logger):
    console = Console(width=120, record=True, file=StringIO())
    console.print(logger._shown())
    return console.export_text()
