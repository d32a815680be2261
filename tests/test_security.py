"""Runs and models come from elsewhere too: nothing in them is unpickled or run, and no path in them leads outside."""

import ast
from pathlib import Path

import pytest
import torch

from app.library import Library
from reasoner import store
from reasoner.cli import main
from reasoner.models import load_policy
from reasoner.runs import check_inside, find_run
from tests.tiny import tiny_model, tiny_tokenizer

ROOT = Path(__file__).parent.parent
OURS = [path for room in ("reasoner", "data", "verifiers", "app") for path in (ROOT / room).rglob("*.py")]


@pytest.fixture
def run(tmp_path) -> Path:
    path = tmp_path / "runs" / "a"
    store.open_run(path, {}, {}, resuming=False)
    return path


@pytest.mark.parametrize("place", ["checkpoints", "rollouts/step-000000.parquet", "report.html", "lock"])
def test_a_link_that_leads_out_of_a_run_is_refused_and_what_it_leads_to_is_left_alone(run, tmp_path, capsys, place):
    outside = tmp_path / "step-000001"
    outside.write_text("precious")
    (run / place).symlink_to(outside)
    with pytest.raises(ValueError, match=rf"{place} in run .*a is a link that leads outside it"):
        check_inside(run)
    for arguments in (["report", str(run)], ["train", "--resume", str(run)], ["rollouts", "list", str(run)]):
        assert main(arguments) == 2 and "leads outside" in capsys.readouterr().err
    with pytest.raises(ValueError, match="leads outside"):
        Library(run.parent, tmp_path / "evals").run("a")
    assert outside.read_text() == "precious"


def test_a_link_within_a_run_and_a_run_that_is_a_link_are_fine(run, tmp_path):
    (run / "again").symlink_to(run / "config.json")
    (tmp_path / "runs" / "b").symlink_to(run)
    assert find_run("b", tmp_path / "runs").name == "b" and Library(run.parent, tmp_path / "evals").run("a") == run


def test_a_pickled_model_is_not_loaded(tmp_path):
    model = tiny_model(vocabulary=60, width=32, layers=2)
    model.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    assert load_policy(tmp_path, device=torch.device("cpu")) is not None
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match="no language model can be loaded from"):
        load_policy(tmp_path, device=torch.device("cpu"))


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_of_ours_unpickles_evaluates_or_trusts_code(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
            assert not {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"} & {
                n.split(".")[0] for n in names
            }
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in ("eval", "exec", "torch.load", "compile", "yaml.load", "np.load", "numpy.load"), called
            trusted = [k for k in node.keywords if k.arg == "trust_remote_code" and ast.unparse(k.value) != "False"]
            assert not trusted
        if isinstance(node, ast.Dict):
            keys = {ast.unparse(k): ast.unparse(v) for k, v in zip(node.keys, node.values, strict=True) if k}
            assert keys.get("'trust_remote_code'", "False") == "False"
