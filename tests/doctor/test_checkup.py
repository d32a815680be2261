"""The doctor: its predictions against brute force, its findings against runs that have one fault each."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
import torch
from transformers import Qwen2Config

from data import Problem
from reasoner.cli.main import main
from reasoner.config.learning import AlgoConfig
from reasoner.config.schema import Config, DataConfig, EvalConfig, RunConfig, SamplingConfig, ValidationConfig
from reasoner.doctor.budget import run_budget
from reasoner.doctor.dry_run import DryRun, StepTiming, next_prompts
from reasoner.doctor.findings import Finding, Severity, summary
from reasoner.doctor.group_variance import informative_share, mixed_chance, predicted_chance
from reasoner.doctor.pass_rate import response_findings, response_stats
from reasoner.doctor.problems import check_epochs, check_gold_answers
from reasoner.doctor.time_estimate import estimate_time
from reasoner.doctor.tokenization import check_tokenizer
from reasoner.inference.hf_engine import TransformersEngine
from reasoner.models.resolve import BASE
from reasoner.rl.algorithms import ALGORITHMS
from reasoner.rollouts.prompts import Template, load_template, render
from reasoner.trainer.run import is_due
from reasoner.types import Completion, Prompt, RolloutGroup
from tests.fixtures.forkserver import TRAINING, forkserver
from tests.fixtures.tiny import TAGS, tiny_model, tiny_tokenizer
from verifiers import Score, Verdict

SUMS = [Problem(f"sums/{i}{j}", f"{i}+{j}?", str(2 + (i + j) % 3), "sums", "train") for i in range(6) for j in range(2)]


# ------------------------------------------------------------------------------------------ groups with a signal


@pytest.mark.parametrize("rewards", [[0, 0, 0, 1, 1, 0.2], [0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 5]])
@pytest.mark.parametrize("group", [2, 3, 5, 6])
def test_the_chance_of_a_mixed_group_is_the_share_of_all_subsets_that_are_mixed(rewards, group):
    subsets = list(combinations(rewards, group))
    counted = sum(len(set(subset)) > 1 for subset in subsets) / len(subsets)
    assert informative_share([rewards], group).value == pytest.approx(counted)


def test_beyond_the_samples_the_chance_is_the_mean_over_the_posterior():
    """3 of 8 right under a Beta(0.5, 2): the integral of 1 - p^20 - (1 - p)^20 over Beta(3.5, 7)."""
    points = [(i + 0.5) / 200_000 for i in range(200_000)]
    weights = [p**2.5 * (1 - p) ** 6 for p in points]
    mean = sum(w * (1 - p**20 - (1 - p) ** 20) for p, w in zip(points, weights, strict=True)) / sum(weights)
    assert predicted_chance([3, 5], [0.5, 2.0], 20) == pytest.approx(mean, abs=1e-6)
    assert predicted_chance([3, 5], [3e6, 5e6], 4) == pytest.approx(1 - (3 / 8) ** 4 - (5 / 8) ** 4, abs=1e-5)


@pytest.mark.parametrize("alike", [0.3, 2.0, 30.0])
def test_few_samples_predict_large_groups(alike):
    """400 problems whose rates come from a Beta with a mean of 0.1, seen in 16 samples each: groups of 64."""
    random = Random(0)
    rates = [random.betavariate(0.1 * alike, 0.9 * alike) for _ in range(400)]
    seen = [[float(random.random() < rate) for _ in range(16)] for rate in rates]
    truth = sum(1 - p**64 - (1 - p) ** 64 for p in rates) / len(rates)
    share = informative_share(seen, 64)
    assert share.value == pytest.approx(truth, abs=0.05)
    assert informative_share(seen, 4).value == pytest.approx(
        sum(1 - p**4 - (1 - p) ** 4 for p in rates) / len(rates), abs=0.05
    )


def test_equal_samples_predict_no_informative_groups():
    assert informative_share([[0.0] * 4] * 8, 64).value == 0
    assert mixed_chance([0, 16], 4) == 0


# ------------------------------------------------------------------------------------------------ the size of a run


@pytest.mark.parametrize(("steps", "every", "save"), [(10, 3, 20), (12, 12, 4), (7, 0, 3), (1, 5, 1)])
def test_run_budget_equals_a_count_over_the_loop(steps, every, save):
    cfg = Config(steps=steps, run=RunConfig(save_interval=save), validation=ValidationConfig(interval=every))
    ends = [step for step in range(steps) if step + 1 == steps]
    looks = {step for step in range(steps) if every and is_due(step, every)} | (set(ends) if every else set())
    assert run_budget(cfg).validations == len(looks) + bool(every)
    assert run_budget(cfg).checkpoints == len({step for step in range(steps) if is_due(step, save)} | set(ends))


def test_a_dry_run_prints_the_size_of_the_run_without_torch():
    code = (
        "import sys; from reasoner.cli.main import main\n"
        "assert main(['train', '--dry-run', '--steps', '10']) == 0 and 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "completions: 256 a step (32 questions x 8) of at most 288 tokens; 2,560 in 10 steps" in done.stdout


def test_the_upcoming_questions_are_those_of_the_first_steps():
    prompts = [render(problem, load_template("none"), tiny_tokenizer()) for problem in SUMS]
    cfg = Config(data=DataConfig(prompts_per_step=5))
    names = [prompt.problem.id for prompt in next_prompts(prompts, cfg, 12)]
    assert len(names) == len(set(names)) == 12
    assert names[:5] == [prompt.problem.id for prompt in next_prompts(prompts, cfg, 5)]
    assert names[:1] == [prompt.problem.id for prompt in next_prompts(prompts, cfg, 1)]


# ---------------------------------------------------------------------------------------------- tokenizer, questions


def findings_by_subject(style: Template, tokenizer=None) -> dict[str, Finding]:
    tokenizer = tokenizer or tiny_tokenizer()
    prompts = [render(problem, style, tokenizer) for problem in SUMS]
    policy = tiny_model(vocabulary=len(tokenizer), width=32, layers=1)
    return {line.subject: line for line in check_tokenizer(tokenizer, policy, style, prompts, frozenset({0}))}


QUESTION = "Question: {question} Answer:"


@pytest.mark.parametrize(
    ("style", "tags", "subject", "severity", "word"),
    [
        (load_template("r1-zero"), TAGS, "stop", Severity.OK, "</answer>"),
        (load_template("r1-zero"), (), "stop", Severity.OK, "</answer>"),  # spelt in pieces, watched for as a text
        (load_template("r1-zero"), TAGS, "prompt", Severity.OK, "without a special token"),
        (Template(QUESTION, stop=("</think>",)), TAGS, "stop", Severity.ERROR, "would not count"),
        (Template(QUESTION, extract="boxed"), TAGS, "stop", Severity.OK, "only the end token"),
        (Template(QUESTION, prefill="<think>", stop=("</answer>",)), TAGS, "stop", Severity.OK, "counts"),
        (Template(QUESTION, prefill="<think>", stop=("</answer>",)), TAGS, "prompt", Severity.OK, "in 1 tokens"),
        (Template(QUESTION[:-3], prefill="er: <think>"), TAGS, "prompt", Severity.WARNING, "merged"),
        (Template(QUESTION + " "), TAGS, "prompt", Severity.WARNING, "ends in a space"),
    ],
)
def test_template_and_tokenizer(style, tags, subject, severity, word):
    line = findings_by_subject(style, tiny_tokenizer(tags=tags))[subject]
    assert line.severity is severity and word in line.message, line


def test_a_stop_token_that_is_encoded_in_pieces_is_an_error():
    tokenizer = tiny_tokenizer(tags=())
    tokenizer.get_added_vocab = lambda: {"</answer>": 300}
    line = findings_by_subject(load_template("r1-zero"), tokenizer)["stop"]
    assert line.severity is Severity.ERROR and "completions do not end there" in line.message


def test_chat_template_that_ends_turns_with_another_token_is_flagged():
    tokenizer = tiny_tokenizer()
    turn = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + 'END' }}{% endfor %}"
    for end, severity in (("<|end|>", Severity.OK), ("<|stop|>", Severity.WARNING)):
        tokenizer.chat_template = turn.replace("END", end)
        assert findings_by_subject(load_template("boxed"), tokenizer)["chat"].severity is severity


def test_tokens_that_the_model_has_no_row_for_are_errors():
    tokenizer = tiny_tokenizer()
    prompts = [render(SUMS[0], load_template("r1-zero"), tokenizer)]
    policy = tiny_model(vocabulary=100, width=32, layers=1)
    first = next(check_tokenizer(tokenizer, policy, load_template("r1-zero"), prompts, frozenset({0})))
    assert first.severity is Severity.ERROR and "the model 100" in first.message


def test_gold_answers_that_cannot_be_graded_are_counted_and_named():
    bad = [Problem(f"bad/{i}", "?", "x+", "bad", "train", verifier="countdown") for i in range(5)]
    line, good = check_gold_answers([*SUMS, *bad], Config())
    assert (line.severity, good) == (Severity.WARNING, SUMS)
    assert "12 of 17" in line.message and "bad/0" in line.message and "and 2 more" in line.message
    assert check_gold_answers(SUMS, Config())[0].severity is Severity.OK
    with pytest.raises(ValueError, match="0 of 5 gold answers"):
        check_gold_answers(bad, Config())


def test_questions_that_come_twice_in_a_step_or_are_evaluated_on_are_warnings():
    prompts = [render(problem, load_template("none"), tiny_tokenizer()) for problem in SUMS]
    lines = list(check_epochs(prompts, prompts[:3], Config(data=DataConfig(prompts_per_step=32))))
    assert [line.severity for line in lines] == [Severity.WARNING, Severity.WARNING]
    assert (
        lines[0].suggestion == "--data.prompts_per_step 12" and "3 of 3 stand in the training set" in lines[1].message
    )


def test_summary_lists_each_suggestion_once():
    lines = [
        Finding(Severity.OK, "a", "x"),
        Finding(Severity.WARNING, "b", "y", "--b 1"),
        Finding(Severity.WARNING, "b", "z", "--b 1"),
    ]
    printed = summary(lines).splitlines()
    assert [line.split() for line in printed[1:-1]] == [["--b", "1", "b"]]
    assert printed[-1] == "1 ok, 2 warnings, 0 errors"


# --------------------------------------------------------------------------------------------- responses and timing


def written(name: str, letters: str) -> RolloutGroup:
    """A group with a letter a completion: r right, w wrong, f formless, all of 10 tokens; R, W, F cut off at 50."""
    verdicts = {"r": Verdict.CORRECT, "w": Verdict.WRONG, "f": Verdict.NO_ANSWER}
    worth = {"r": 1.2, "w": 0.2, "f": 0.0}
    return RolloutGroup(
        Prompt(replace(SUMS[0], id=name), "?", "", (1,)),
        tuple(
            Completion("</answer>", (1,) * (50 if c.isupper() else 10), (), "length" if c.isupper() else "stop", 0)
            for c in letters
        ),
        tuple(Score(worth[c], {}, verdicts[c], well_formed=c != "f", lenient=c == "r") for c in letters.lower()),
    )


CFG = Config(
    sampling=SamplingConfig(max_tokens=50), algo=AlgoConfig(group_size=4), data=DataConfig(prompts_per_step=32)
)


@pytest.mark.parametrize(
    ("groups", "subject", "severity", "suggestion"),
    [
        (["rwff"] * 4, "variance", Severity.OK, ""),
        (["ffff"] * 4, "variance", Severity.ERROR, ""),
        (["rrrr"] * 3 + ["rrrw"], "variance", Severity.WARNING, "--algo.group_size 16 --data.prompts_per_step 8"),
        (["rwww"] * 4, "pass rate", Severity.OK, ""),
        (["wfff"] * 4, "pass rate", Severity.WARNING, ""),
        (["rrrr"] * 4, "pass rate", Severity.WARNING, ""),
        (["rwff"] * 4, "format", Severity.OK, ""),
        (["ffff"] * 4, "format", Severity.WARNING, "--prompt none"),
        (["rwff"] * 4, "responses", Severity.OK, ""),
        (["rwFF"] * 4, "responses", Severity.WARNING, "--sampling.max_tokens 32"),  # only wrong ones need so much room
        (["wwFF"] * 4, "responses", Severity.WARNING, "--sampling.max_tokens 100"),
        (["RwFF"] * 4, "responses", Severity.WARNING, "--sampling.max_tokens 100"),
    ],
)
def test_responses_give_the_expected_severity_and_suggestion(groups, subject, severity, suggestion):
    sampled = [written(f"p{i}", letters) for i, letters in enumerate(groups)]
    responses = response_stats(sampled, load_template("r1-zero"), CFG)
    lines = {
        line.subject: line
        for line in response_findings(responses, load_template("r1-zero"), tiny_tokenizer(), CFG, 400)
    }
    assert (lines[subject].severity, lines[subject].suggestion) == (severity, suggestion)


def test_grading_that_fails_is_a_warning():
    group = written("p", "rwff")
    group = replace(group, scores=(*group.scores[:3], replace(group.scores[3], verdict=Verdict.TIMED_OUT)))
    responses = response_stats([group], load_template("r1-zero"), CFG)
    lines = {
        line.subject: line
        for line in response_findings(responses, load_template("r1-zero"), tiny_tokenizer(), CFG, 400)
    }
    assert lines["grading"].suggestion == "--verify.seconds 4"


def test_the_expected_time_is_the_sum_of_steps_validations_table_and_checkpoints():
    """A quarter of a step's 128 completions took 2 s and 3 s, longer ones twice that; 100 others took 5 s."""
    now, later, bulk = (
        StepTiming(32, 320, 1.5, 3.0, 0.5),
        StepTiming(32, 960, 3.0, 6.0, 1.0),
        StepTiming(100, 1000, 5.0),
    )
    dry_run = DryRun([], now, later, bulk, 0.3, 0.2, 0.0, {}, 0)
    cfg = replace(
        CFG,
        steps=10,
        validation=ValidationConfig(interval=5, problems=4, samples=4),
        eval=EvalConfig(heldout_problems=10, samples=4),
    )
    rest = {"cfg": cfg, "setup_seconds": 7.0, "checkpoint_seconds": 3.0, "informative_share": 0.5}
    now = estimate_time(dry_run, dry_run.now, ALGORITHMS["grpo"], **rest)
    assert (now.step, now.steps) == (4 * 5 + 0.5, 10 * 20.5)
    assert now.validation == pytest.approx(3 * 20 * 0.05) and now.heldout == pytest.approx(100 * 0.05)
    assert (
        now.checkpoints == pytest.approx(3 + 2 * 3 / 3)
        and now.total == now.steps + now.validation + now.heldout + 7 + 5
    )
    later = estimate_time(dry_run, dry_run.later, ALGORITHMS["grpo"], **rest)
    assert later.step == 4 * 10 + 0.5
    assert later.validation == pytest.approx((1 + 2 * 2) * 20 * 0.05) and later.heldout == pytest.approx(50 * 0.05 * 3)
    assert estimate_time(dry_run, dry_run.now, ALGORITHMS["dapo"], **rest).step == 4 * (2 * 2 + 3) + 0.5
    assert (
        estimate_time(
            dry_run, dry_run.now, ALGORITHMS["grpo"], **(rest | {"cfg": replace(cfg, max_train_tokens=2600)})
        ).num_steps
        == 3
    )


# ------------------------------------------------------------------------------------------------- the whole command


def train_on_sums(model, tokenizer) -> None:
    """Train the model to write the strict form, with an answer that is sometimes correct."""
    rows = [
        tokenizer(f"Question: {problem.question} Answer: <think> so </think> <answer> {answer} </answer><|end|>")
        for problem in SUMS
        for answer in (2, 3, 4)
    ]
    ids = torch.tensor([row["input_ids"] for row in rows])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(50):
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A trained model, an untrained one, problems, and a prompt template."""
    folder = tmp_path_factory.mktemp("doctor")
    tokenizer, threads = tiny_tokenizer(), torch.get_num_threads()
    torch.set_num_threads(1)
    for name in ("taught", "untaught"):
        model = tiny_model(vocabulary=len(tokenizer))
        if name == "taught":
            train_on_sums(model, tokenizer)
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    torch.set_num_threads(threads)
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
        "samples": 8, "run.dir": tmp_path / "runs", "json": tmp_path / "report.json",
    }  # fmt: skip
    threads = torch.get_num_threads()

    def run(**changed: object):
        options = settings | changed
        status = main(["doctor", *(str(part) for key, value in options.items() for part in (f"--{key}", value))])
        out, err = capsys.readouterr()
        assert not (tmp_path / "runs").exists(), "the doctor leaves nothing behind"
        report = json.loads((tmp_path / "report.json").read_text()) if (tmp_path / "report.json").exists() else {}
        lines = {line.split()[1]: (line.split()[0], line) for line in out.splitlines() if len(line.split()) > 1}
        return status, lines, report, err

    yield run
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)


def test_a_healthy_run_has_no_warnings_and_a_full_json_report(doctor):
    status, lines, report, _ = doctor()
    assert (status, report["status"]) == (0, "ok"), report["findings"]
    assert {line["severity"] for line in report["findings"]} == {"ok"}
    assert {"problems", "tokenizer", "parity", "variance", "time", "disk"} <= lines.keys()
    assert report["parity"] < 1e-3 and report["parity_after_update"] < 1e-3
    answers = report["responses"]
    assert (answers["problems"], answers["samples"]) == (8, 64)
    assert 0.1 < answers["correct"]["value"] < 0.7 and answers["well_formed"]["value"] > 0.5
    assert set(answers["informative_share"]) == {"4", "8", "16", "64"}
    assert report["dry_run"]["now"]["completions"] == 16
    assert report["time"]["now"]["steps"] == pytest.approx(3 * report["time"]["now"]["step"])
    assert report["disk"]["bytes_per_token"] > 1 and report["settings"]["algo.group_size"] == 4


@pytest.mark.parametrize(
    "changed",
    [
        {"algo": "ppo"},
        {"algo": "dapo"},
        {"algo": "trpo"},
        {"algo": "grpo_process"},
        {"control": "wrong-gold"},
        {"max_train_tokens": 500, "algo.beta": 0},
        {"data.prompts_per_step": 600, "problems": 4},
    ],
    ids=str,
)
def test_every_algorithm_that_trains_can_be_checked(doctor, changed):
    status, lines, report, _ = doctor(**changed)
    assert status == 0 and lines["time"][0] == "ok", report["findings"]


@pytest.mark.parametrize(("problems", "samples"), [(2, 2), (4, 3), (1, 8)])
def test_no_call_exceeds_the_limits_on_problems_and_samples(doctor, monkeypatch, problems, samples):
    calls = []

    class Counting(TransformersEngine):
        def generate(self, prompts, sampling, seeds, *others, **more):
            calls.append([(prompt.problem.id, len(own)) for prompt, own in zip(prompts, seeds, strict=True)])
            return super().generate(prompts, sampling, seeds, *others, **more)

    monkeypatch.setattr("reasoner.inference.hf_engine.TransformersEngine", Counting)
    status, _, report, _ = doctor(
        problems=problems, samples=samples, **{"data.prompts_per_step": 8, "algo.group_size": 8}
    )
    assert status == 0 and len({name for call in calls for name, _ in call}) <= problems
    assert max(count for call in calls for _, count in call) <= samples
    assert all(len(call) <= problems for call in calls)
    assert (report["responses"]["problems"], report["responses"]["samples"]) == (problems, problems * samples)
    assert report["dry_run"]["now"]["completions"] == problems * samples
    assert set(report["responses"]["informative_share"]) == {"4", "8", "16", "64"}


def test_a_model_larger_than_the_machine_is_refused_before_its_weights_are_loaded(doctor, place, tmp_path):
    """There are no weights to load, so an attempt would fail."""
    vast = {"hidden_size": 2**16, "intermediate_size": 2**18, "num_attention_heads": 512, "num_key_value_heads": 512}
    Qwen2Config(vocab_size=400, num_hidden_layers=8, **vast, architectures=["Qwen2ForCausalLM"]).save_pretrained(
        tmp_path / "vast"
    )
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
        ({"model": "nothing-here"}, "no model 'nothing-here'"),
        ({"data": "{bad}"}, "0 of 1 gold answers"),
        ({"sampling.top_p": 0.9}, "sampling.top_p is 0.9"),
        ({"problems": 0}, "--problems is 0; it must be at least 1"),
        ({"samples": 1}, "--samples is 1; it must be at least 2"),
    ],
)
def test_a_run_that_cannot_be_checked_is_refused_in_one_line(doctor, tmp_path, changed, message):
    (tmp_path / "bad.jsonl").write_text(json.dumps({"question": "?", "answer": "9" * 600}) + "\n")
    filled = {key: str(value).format(bad=tmp_path / "bad.jsonl") for key, value in changed.items()}
    status, lines, report, err = doctor(**filled)
    assert (status, lines, report) == (2, {}, {})
    assert message in err.splitlines()[-1] and err.splitlines()[-1].startswith("reasoner: error: ")


VLLM = pytest.param("vllm", marks=[pytest.mark.slow, pytest.mark.skipif(find_spec("vllm") is None, reason="no vLLM")])


@pytest.mark.skipif(not (BASE / "model.safetensors").is_file(), reason="the embedded base is not built")
@pytest.mark.parametrize("engine", ["transformers", VLLM])
def test_the_embedded_base_is_green(tmp_path, engine):
    small = {"data.prompts_per_step": 4, "algo.group_size": 4, "problems": 8, "samples": 8, "eval.heldout_problems": 0}
    arguments = {"model": "base", "engine": engine, "threads": 1, "json": tmp_path / "report.json", **small}
    command = forkserver(TRAINING).start(
        "doctor", *(part for key, value in arguments.items() for part in (f"--{key}", value))
    )
    assert command.wait(timeout=280) == 0, command.errors()[-3000:]
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["responses"]["samples"] >= 32 and report["responses"]["informative_share"]["4"]["value"] > 0.5
    assert "later" in report["time"], "correct responses of the base are longer than the others"
