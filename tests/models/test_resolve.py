"""Resolution of --model."""

import pytest

from reasoner.models.resolve import resolve_model


def model(folder):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


def test_locate_returns_last_or_selected_checkpoint_of_run_and_none_of_another_name(tmp_path):
    steps = [model(tmp_path / "runs" / "a" / "checkpoints" / f"step-{step:06d}") for step in (2, 10)]
    for name in ("step-backup", "step-00000\u0665"):  # 5 in Arabic digits
        model(steps[0].with_name(name))
    for name in ("a", str(tmp_path / "runs" / "a")):
        assert resolve_model(name, runs=tmp_path / "runs") == steps[1]
        assert resolve_model(name, runs=tmp_path / "runs", step="2") == steps[0]
    with pytest.raises(ValueError, match=r"'3' .* 2, 10"):
        resolve_model("a", runs=tmp_path / "runs", step="3")


def test_locate_refuses_run_without_checkpoint(tmp_path):
    run = model(tmp_path / "runs" / "a")  # a run has a config.json too
    (run / "metrics.jsonl").write_text("")
    with pytest.raises(ValueError, match="has no checkpoint yet"):
        resolve_model("a", runs=tmp_path / "runs")
    (run / "checkpoints").mkdir()
    with pytest.raises(ValueError, match="has no checkpoint yet"):
        resolve_model("a", runs=tmp_path / "runs")


def test_best_checkpoint_of_a_run_without_others_is_found_by_its_name(tmp_path):
    best = model(tmp_path / "runs" / "a" / "checkpoints" / "best")
    assert resolve_model("a", runs=tmp_path / "runs", step="best") == best
    with pytest.raises(ValueError, match="'best'"):
        resolve_model("a", runs=tmp_path / "runs")
    with pytest.raises(ValueError, match=r"'3' .* best"):
        resolve_model("a", runs=tmp_path / "runs", step="3")


@pytest.mark.parametrize("name", ["nothing", "/no/such", "~x/y"])
def test_locate_names_searched_places_for_unknown_model(tmp_path, name):
    with pytest.raises(ValueError, match=r"'base'.* run .* config.json.* hub"):
        resolve_model(name, runs=tmp_path)
