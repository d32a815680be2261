"""What --model names."""

import pytest

from reasoner.models.resolve import BASE, locate


def model(folder):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


def test_a_model_folder_is_itself(tmp_path):
    assert locate(str(model(tmp_path / "m")), runs=tmp_path / "runs") == tmp_path / "m"


def test_a_run_is_its_last_checkpoint_or_the_one_asked_for(tmp_path):
    steps = [model(tmp_path / "runs" / "a" / "checkpoints" / f"step-{step:06d}") for step in (2, 10)]
    for name in ("a", str(tmp_path / "runs" / "a")):
        assert locate(name, runs=tmp_path / "runs") == steps[1]
        assert locate(name, runs=tmp_path / "runs", step="2") == steps[0]
    with pytest.raises(ValueError, match=r"no checkpoint '3' \(steps done\); there are 2, 10"):
        locate("a", runs=tmp_path / "runs", step="3")


def test_a_run_that_has_not_saved_says_so(tmp_path):
    run = model(tmp_path / "runs" / "a")  # a run has a config.json too
    (run / "metrics.jsonl").write_text("")
    with pytest.raises(ValueError, match="has no checkpoint yet"):
        locate("a", runs=tmp_path / "runs")
    (run / "checkpoints").mkdir()
    with pytest.raises(ValueError, match="has no checkpoint yet"):
        locate("a", runs=tmp_path / "runs")


@pytest.mark.parametrize("name", ["nothing", "./a/b", "/no/such", "a/b/c", "~x/y"])
def test_what_is_nothing_of_all_this_says_what_was_looked_for(tmp_path, name):
    with pytest.raises(ValueError, match=r"not 'base', not a run in .*, not a folder with a config.json, not a hub"):
        locate(name, runs=tmp_path)


def test_base_is_in_the_package(tmp_path):
    if not (BASE / "config.json").is_file():
        pytest.skip("the embedded base is not built")
    assert locate("base", runs=tmp_path) == BASE
