"""The checks of a whole run by `reasoner doctor`: a healthy run, and runs that have one fault each."""

import json
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import Qwen2Config

from reasoner.cli.main import main
from reasoner.config.learning import OptimConfig
from reasoner.config.resolve import resolve
from reasoner.config.schema import Config, EngineConfig
from reasoner.doctor.checkup import _parity_finding, report
from reasoner.doctor.findings import Finding, Severity
from reasoner.inference.hf_engine import TransformersEngine
from tests.doctor.sums import QUESTION, SUMS
from tests.fixtures.forkserver import finish
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.trainings import flags


def train_on_sums(model, tokenizer) -> None:
    """Train the model to write the strict form, with an answer that is sometimes correct."""
    text = "Question: {} Answer: <think> so </think> <answer> {} </answer><|end|>"
    texts = [text.format(problem.question, answer) for problem in SUMS for answer in (2, 3, 4)]
    ids = torch.tensor(tokenizer(texts)["input_ids"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(50):
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A trained model, an untrained one, problems, and a prompt template."""
    folder = tmp_path_factory.mktemp("doctor")
    tokenizer = tiny_tokenizer()
    torch.set_num_threads(1)
    for name in ("taught", "untaught"):
        model = tiny_model(vocabulary=len(tokenizer))
        if name == "taught":
            train_on_sums(model, tokenizer)
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    rows = [{"id": p.id, "question": p.question, "answer": p.answer} for p in SUMS]
    (folder / "sums.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "prompt.toml").write_text(f'text = "{QUESTION}"\nstop = ["</answer>"]\n')
    return folder


@pytest.fixture
def doctor(place, tmp_path, capsys):
    """Run the command, by default on the trained model: (exit status, severity and text by subject, JSON, stderr)."""
    settings = {
        "model": place / "taught", "data": place / "sums.jsonl", "prompt": place / "prompt.toml",
        "data.prompts_per_step": 4, "algo.group_size": 4, "sampling.max_tokens": 24, "steps": 3,
        "validation.interval": 0, "eval.heldout_problems": 0, "engine": "transformers", "threads": 1, "problems": 8,
        "num-samples": 8, "run.dir": tmp_path / "runs", "json": tmp_path / "report.json",
    }  # fmt: skip

    def run(**changed: object):
        options = settings | changed
        status = main(["doctor", *flags(options)])
        out, err = capsys.readouterr()
        assert not (tmp_path / "runs").exists(), "the doctor leaves nothing behind"
        report = json.loads((tmp_path / "report.json").read_text()) if (tmp_path / "report.json").exists() else {}
        lines = {line.split()[1]: (line.split()[0], line) for line in out.splitlines() if len(line.split()) > 1}
        return status, lines, report, err

    return run


def test_a_healthy_run_has_no_warnings_and_a_full_json_report(doctor):
    status, lines, report, _ = doctor()
    assert (status, report["status"]) == (0, "ok"), report["findings"]
    assert {line["severity"] for line in report["findings"]} == {"ok"}
    assert {"problems", "tokenizer", "parity", "variance", "time", "disk"} <= lines.keys()
    assert report["parity"] < 1e-3 and report["parity_after_update"] < 1e-3
    answers = report["responses"]
    assert (answers["problems"], answers["samples"]) == (8, 64)
    assert 0.1 < answers["correct"]["value"] < 0.7 and answers["well_formed"]["value"] > 0.5
    assert set(answers["informative_share"]) == {"4", "8"}
    assert report["dry_run"]["now"]["completions"] == 16
    assert report["time"]["steps"] == pytest.approx(3 * report["time"]["step"])
    assert report["disk"]["bytes_per_token"] > 1 and report["settings"]["algo.group_size"] == 4


OTHERS = (
    {"algo": "ppo"}, {"algo": "trpo"}, {"algo": "dapo"}, {"control": "wrong-gold"},
    {"max_train_tokens": 500, "algo.beta": 0}, {"data.prompts_per_step": 600, "problems": 4},
)  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [{"algo": "grpo_process"}, *(pytest.param(own, marks=pytest.mark.slow) for own in OTHERS)],
    ids=str,
)
def test_every_algorithm_that_trains_can_be_checked(doctor, changed):
    status, lines, report, _ = doctor(**changed)
    assert status == 0 and lines["time"][0] == "ok", report["findings"]


def test_trial_step_updates_the_policy_though_the_critic_warms_up_first(doctor):
    status, lines, report, _ = doctor(**{"algo": "ppo", "critic.warmup_steps": 5})
    assert status == 0 and lines["update"][0] == "ok" and report["update"]["grad_norm"] > 0, lines["update"]


@pytest.mark.parametrize(("problems", "samples"), [(4, 3), pytest.param(1, 8, marks=pytest.mark.slow)])
def test_no_call_exceeds_the_limits_on_problems_and_samples(doctor, monkeypatch, problems, samples):
    calls = []

    class Counting(TransformersEngine):
        def generate(self, prompts, sampling, seeds, *others, **more):
            if prompts[0].problem.question:  # not the probe of the weight sync
                calls.append([(prompt.problem.id, len(own)) for prompt, own in zip(prompts, seeds, strict=True)])
            return super().generate(prompts, sampling, seeds, *others, **more)

    monkeypatch.setattr("reasoner.inference.hf_engine.TransformersEngine", Counting)
    sizes = {"num-samples": samples, "data.prompts_per_step": 8, "algo.group_size": 8}
    status, _, report, _ = doctor(problems=problems, **sizes)
    assert status == 0 and len({name for call in calls for name, _ in call}) <= problems
    assert max(count for call in calls for _, count in call) <= samples
    assert all(len(call) <= problems for call in calls)
    assert (report["responses"]["problems"], report["responses"]["samples"]) == (problems, problems * samples)
    assert report["dry_run"]["now"]["completions"] == problems * samples
    assert set(report["responses"]["informative_share"]) == ({"3"} if samples == 3 else {"4", "8"})


def test_a_model_larger_than_the_machine_is_refused_before_its_weights_are_loaded(doctor, place, tmp_path):
    """There are no weights to load, so an attempt would fail."""
    vast = {"hidden_size": 2**16, "intermediate_size": 2**18, "num_attention_heads": 512, "num_key_value_heads": 512}
    config = Qwen2Config(vocab_size=400, num_hidden_layers=8, **vast, architectures=["Qwen2ForCausalLM"])
    config.save_pretrained(tmp_path / "vast")
    tiny_tokenizer().save_pretrained(tmp_path / "vast")
    (tmp_path / "vast" / "model.safetensors").write_bytes(b"")
    status, lines, report, _ = doctor(model=tmp_path / "vast")
    severity, text = lines["memory"]
    assert (status, severity, report["status"]) == (2, "error", "error")
    assert "MiB by formula" in text and "MiB free on this" in text and "take a smaller model" in text
    assert "parity" not in lines


def test_a_model_without_a_single_reward_is_an_error(doctor, place):
    status, _, report, _ = doctor(model=place / "untaught")
    by_subject = {line["subject"]: line for line in report["findings"]}
    assert status == 2
    assert by_subject["variance"]["severity"] == "error" and by_subject["pass rate"]["severity"] == "warning"
    assert by_subject["format"]["suggestion"] == "--prompt none"
    assert by_subject["responses"]["severity"] == "warning"  # cut off: there is room for more


def test_a_stop_text_that_no_response_contains_is_a_warning(doctor, tmp_path):
    (tmp_path / "own.toml").write_text(f'text = "{QUESTION}"\nstop = ["THE END"]\n')
    status, _, report, _ = doctor(prompt=tmp_path / "own.toml")
    stops = [line for line in report["findings"] if line["subject"] == "stop"]
    assert status == 0
    assert [line["severity"] for line in stops] == ["ok", "warning"] and "contains 'THE END'" in stops[1]["message"]


def test_a_tokenizer_without_an_end_token_is_an_error(doctor, place, tmp_path):
    tokenizer = tiny_tokenizer()
    tokenizer.eos_token = None
    tiny_model(vocabulary=len(tokenizer), width=32, layers=1).save_pretrained(tmp_path / "endless")
    tokenizer.save_pretrained(tmp_path / "endless")
    status, _, report, _ = doctor(model=tmp_path / "endless")
    assert status == 2 and report["findings"][-1]["severity"] == "error"
    assert "has no end token" in report["findings"][-1]["message"]


def test_questions_that_are_too_long_are_warnings_or_errors(doctor, place, tmp_path):
    rows = [{"question": "1+1?", "answer": "2"}, {"question": "and " * 600, "answer": "2"}]
    for count, status, severity in ((2, 0, "warning"), (1, 2, "error")):
        (tmp_path / "long.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[-count:]))
        code, _, report, _ = doctor(data=tmp_path / "long.jsonl")
        finding = next(line for line in report["findings"] if "longer" in line["message"])
        assert (code, finding["severity"]) == (status, severity)


def test_a_disk_without_room_is_an_error(doctor, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=100_000))
    status, lines, _, _ = doctor()
    assert status == 2 and lines["disk"][0] == "error"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"data": "{bad}"}, "1 of 1 problems"),
        ({"sampling.temperature": 0.0}, "sampling.temperature is 0"),
        ({"problems": 0}, "--problems is 0; it must be at least 1"),
        ({"num-samples": 1}, "--num-samples is 1; it must be at least 2"),
    ],
)
def test_a_run_that_cannot_be_checked_is_refused_in_one_line(doctor, tmp_path, changed, message):
    (tmp_path / "bad.jsonl").write_text(json.dumps({"question": "?", "answer": "9" * 600}) + "\n")
    filled = {key: str(value).format(bad=tmp_path / "bad.jsonl") for key, value in changed.items()}
    status, lines, report, err = doctor(**filled)
    assert (status, lines, report) == (2, {}, {})
    assert message in err.splitlines()[-1] and err.splitlines()[-1].startswith("reasoner: error: ")


VLLM = pytest.param("vllm", marks=pytest.mark.skipif(find_spec("vllm") is None, reason="no vLLM"))


@pytest.mark.slow  # a healthy run of a smaller model: above
@pytest.mark.parametrize("engine", ["transformers", VLLM])
def test_the_embedded_base_is_green(tmp_path, engine):
    small = {"data.prompts_per_step": 4, "algo.group_size": 4, "problems": 8, "num-samples": 8}
    small |= {"model": "base", "engine": engine, "threads": 1, "eval.heldout_problems": 0}
    finish("doctor", *flags(small | {"json": tmp_path / "report.json"}))
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["responses"]["samples"] >= 32 and report["responses"]["informative_share"]["4"]["value"] > 0.5


@pytest.mark.parametrize(("gap", "severity"), [(1.08, "ok"), (2.0, "warning"), (4.0, "error")])
def test_what_a_pretrained_model_rounds_by_in_bfloat16_is_no_fault(gap, severity):
    """Up to 1.08 nats in each of 31 steps of some 4,000 tokens of SmolLM2-135M, engine and trainer in bfloat16."""
    cfg = Config(engine=EngineConfig(dtype="bfloat16"), optim=OptimConfig(dtype="bfloat16"))
    assert _parity_finding("at the start", gap, cfg).severity == severity


def test_a_terminal_gets_no_escaped_codes_of_colours(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    report(resolve([]), iter([Finding(Severity.OK, "disk", "room")]), None)
    assert capsys.readouterr().out.splitlines()[0].split() == ["ok", "disk", "room"]
