"""Runs and models come from elsewhere too: nothing in them is unpickled or run, and no path in them leads outside."""

import ast
import base64
import io
import json
from functools import cache
from pathlib import Path

import pytest
import torch

from app.run_library import RunLibrary
from data.environments import rubric
from reasoner.cli.main import main
from reasoner.inference.sampling import end_token_ids
from reasoner.models.loading import load_policy
from reasoner.runs.run_dir import check_inside, find_run
from reasoner.runs.run_start import open_run
from tests.fixtures.forkserver import TRAINING, forkserver
from tests.fixtures.tiny import save_tiny, tiny_model, tiny_tokenizer

ROOT = Path(__file__).parents[2]
OURS = [path for package in ("reasoner", "data", "verifiers", "app") for path in (ROOT / package).rglob("*.py")]


@cache
def nodes() -> list[tuple[Path, ast.AST]]:
    """Every node of our programs with its file."""
    return [(path, node) for path in OURS for node in ast.walk(ast.parse(path.read_text()))]


@pytest.fixture
def run(tmp_path) -> Path:
    path = tmp_path / "runs" / "a"
    open_run(path, {}, {}, resuming=False)
    return path


@pytest.mark.parametrize("place", ["checkpoints", "rollouts/step-000000.parquet", "report.json", "lock"])
def test_a_link_that_leads_out_of_a_run_is_refused_and_what_it_leads_to_is_left_alone(run, tmp_path, capsys, place):
    outside = tmp_path / "step-000001"
    outside.write_text("precious")
    (run / place).symlink_to(outside)
    with pytest.raises(ValueError, match=rf"{place} in run .*a is a link"):
        check_inside(run)
    for arguments in (["runs", "show", str(run)], ["train", "--resume", str(run)], ["rollouts", "list", str(run)]):
        assert main(arguments) == 2 and "leads outside" in capsys.readouterr().err
    with pytest.raises(ValueError, match="leads outside"):
        RunLibrary(run.parent, tmp_path / "evals").run("a")
    assert outside.read_text() == "precious"


def test_a_link_within_a_run_and_a_run_that_is_a_link_are_fine(run, tmp_path):
    (run / "again").symlink_to(run / "config.json")
    (tmp_path / "runs" / "b").symlink_to(run)
    assert find_run("b", tmp_path / "runs").name == "b" and RunLibrary(run.parent, tmp_path / "evals").run("a") == run


def test_a_pickled_model_is_not_loaded(tmp_path):
    model = tiny_model(vocabulary=60, width=32, layers=2)
    model.save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    assert load_policy(tmp_path, device=torch.device("cpu")) is not None
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match="no language model can be loaded from"):
        load_policy(tmp_path, device=torch.device("cpu"))


def is_unsafe(node: ast.AST) -> bool:
    """Whether a node of a program unpickles, evaluates or trusts code."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
        return bool({"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"} & {n.split(".")[0] for n in names})
    if isinstance(node, ast.Call):
        trusted = [k for k in node.keywords if k.arg == "trust_remote_code" and ast.unparse(k.value) != "False"]
        evaluating = ("eval", "exec", "torch.load", "compile", "yaml.load", "np.load", "numpy.load")
        return bool(trusted) or ast.unparse(node.func) in evaluating
    if isinstance(node, ast.Dict):
        keys = {ast.unparse(k): ast.unparse(v) for k, v in zip(node.keys, node.values, strict=True) if k}
        return keys.get("'trust_remote_code'", "False") != "False"
    return False


def test_nothing_of_ours_unpickles_evaluates_or_trusts_code():
    unsafe = [(str(path.relative_to(ROOT)), ast.unparse(node)) for path, node in nodes() if is_unsafe(node)]
    assert unsafe == [("data/environments/rubric.py", "import pickle")]  # of signed states: the next test


def test_state_of_an_environment_is_read_only_with_the_users_signature(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "ours"))
    stored = rubric._packed({"turns": [1, 2]})
    assert rubric._unpacked(stored) == {"turns": [1, 2]}
    assert (tmp_path / "ours/reasoner/state-key").stat().st_mode & 0o077 == 0
    (tmp_path / "ours/reasoner/state-key").chmod(0o640)
    rubric._key.cache_clear()
    with pytest.raises(ValueError, match="chmod 600"):
        rubric._packed({})
    (tmp_path / "ours/reasoner/state-key").chmod(0o600)
    content = bytearray(base64.b64decode(stored))
    content[-1] ^= 1
    monkeypatch.setattr(rubric, "pickle", None)
    with pytest.raises(ValueError, match="state-key"):
        rubric._unpacked(base64.b64encode(content).decode())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another"))
    with pytest.raises(ValueError, match="state-key"):
        rubric._unpacked(stored)


@pytest.mark.parametrize(
    "code", ["import pickle", "from joblib import load", "eval('1')", "torch.load(x)", "f(trust_remote_code=True)",
             "f(**{'trust_remote_code': True})"]
)  # fmt: skip
def test_unsafe_code_is_recognised(code):
    assert any(map(is_unsafe, ast.walk(ast.parse(code))))


# ------------------------------------------------------------------------------- code that a model folder brings


CODE = """
from pathlib import Path
Path({mark!r}).touch()
from transformers import PretrainedConfig, PreTrainedTokenizerFast
class OwnConfig(PretrainedConfig):
    model_type = "own"
    def __init__(self, **values):
        super().__init__(**values)
        self.max_position_embeddings, self.vocab_size, self.hidden_size = 512, 320, 32
class OwnTokenizer(PreTrainedTokenizerFast):
    pass
"""


def own_code(folder: Path, mark: Path, parts: tuple[str, ...]) -> Path:
    """A model's folder whose config or tokenizer has a class of its own, in a file that touches `mark` when run."""
    save_tiny(folder, width=32, layers=1)
    (folder / "generation_config.json").unlink()  # so that the end token is looked up in config.json
    changes = {
        "config": {"model_type": "own", "auto_map": {"AutoConfig": "own_config.OwnConfig"}},
        "tokenizer_config": {
            "tokenizer_class": "Own",
            "auto_map": {"AutoTokenizer": [None, "own_tokenizer_config.OwnTokenizer"]},
        },
    }
    for part in parts:
        path = folder / f"{part}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes[part]))
        (folder / f"own_{part}.py").write_text(CODE.format(mark=str(mark)))
    return folder


def _chat(folder: Path) -> str:
    asked = {"model": str(folder), "step": "", "prompt": "none", "question": "1?", "gold": "", "begin": ""}
    item = asked | {"temperature": 1.0, "samples": 1, "max_tokens": 1, "seed": 0}
    return json.dumps({"token": "t", "task": "sample", "numbers": [0], "items": [[item]]}) + "\n"


EVAL, CHAT = "reasoner.cli.main", "reasoner.inference.chat_worker"  # modules whose main is run
EVAL_FLAGS = ["--data", "generated:heldout", "--engine", "transformers", "--max-tokens", "1", "--num-samples", "1"]
BOTH = ("config", "tokenizer_config")
NO_CONFIG, NO_TOKENIZER = "no model configuration can be loaded from", "no tokenizer can be loaded from"


@pytest.mark.parametrize(
    ("module", "parts", "outcome"),
    [
        (EVAL, ("config",), NO_CONFIG),
        (EVAL, ("tokenizer_config",), "generated:heldout  150"),  # tokenizer.json is read without the class
        (EVAL, BOTH, NO_TOKENIZER),
        (CHAT, ("config",), NO_CONFIG),
    ],
    ids=["eval config", "eval tokenizer", "eval both", "chat config"],
)
def test_code_in_a_model_folder_is_not_run_though_standard_input_says_yes(tmp_path, module, parts, outcome):
    folder = own_code(tmp_path / "own", tmp_path / "code_was_run", parts)
    words, text = ["eval", "--model", folder, *EVAL_FLAGS, "--out", tmp_path / "evals"], "yes\n" * 20
    if module == CHAT:
        words, text = ["--runs", tmp_path / "runs"], _chat(folder) + text
    command = forkserver(TRAINING).start(*words, module=module, text=text)
    command.wait(timeout=250)
    said = command.output() + command.errors()
    assert not (tmp_path / "code_was_run").exists(), said
    assert outcome in said and "Do you wish to run the custom code" not in said


def test_training_and_end_tokens_of_a_model_with_code_are_refused_though_standard_input_says_yes(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n" * 20))
    own = own_code(tmp_path / "own", mark := tmp_path / "code_was_run", BOTH)
    assert main(["train", "--steps", "1", "--model", str(own)]) == 2
    with pytest.raises(ValueError, match=NO_CONFIG):
        end_token_ids(own, tiny_tokenizer())
    said = capsys.readouterr()
    assert NO_TOKENIZER in said.err
    assert not mark.exists() and "Do you wish to run the custom code" not in said.out + said.err


def test_every_loader_of_transformers_is_called_in_one_file():
    calls = {
        path.relative_to(ROOT).as_posix()
        for path, node in nodes()
        if isinstance(node, ast.Attribute)
        and node.attr == "from_pretrained"
        and ast.unparse(node.value) != "GenerationConfig"  # which is numbers alone
    }
    assert calls == {"reasoner/models/loading.py"}
