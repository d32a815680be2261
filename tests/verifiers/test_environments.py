"""Responses graded by the scorers of environments, in real worker processes. Skips where a library is absent."""

import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from data import Problem, load
from data.environments.spec import EnvironmentRow, environment_name, tools_of
from data.files import write_jsonl, written_spec
from tests.fixtures.environments import library_rewards, write_interpreter
from verifiers import RewardWeights, Score, Verdict, VerifierPool

NEEDS_GYM = pytest.mark.skipif(find_spec("reasoning_gym") is None, reason="reasoning-gym is not installed")
TEN = (
    "basic_arithmetic", "chain_sum", "count_bits", "countdown", "fraction_simplification", "gcd", "number_sorting",
    "simple_equations", "spell_backward", "word_ladder",
)  # fmt: skip
EVAL = ("string_insertion", "n_queens", "binary_matrix")


def response(answer: str) -> str:
    return f"<think>a</think> <answer>{answer}</answer>"


@pytest.fixture(scope="module")
def pool() -> Iterator[VerifierPool]:
    with VerifierPool(workers=1, seconds=1.0) as pool:
        yield pool


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_interpreter(tmp_path_factory.mktemp("environment"))


def outcomes(scores: list[Score]) -> list[tuple[Verdict, float]]:
    return [(score.verdict, score.parts["correct"]) for score in scores]


@NEEDS_GYM
def test_rewards_of_ten_gym_tasks_are_the_librarys_scores(pool: VerifierPool) -> None:
    import reasoning_gym
    from reasoning_gym.composite import DatasetSpec

    tasks = [DatasetSpec(name, 1.0, {}) for name in TEN]
    library = reasoning_gym.create_dataset("composite", size=40, seed=20250101, datasets=tasks)
    items, expected = [], []
    for problem in load(f"gym:{'+'.join(TEN)}?size=40"):
        entry = {"question": problem.question, "answer": problem.answer, "metadata": problem.columns["metadata"]}
        for answer in (problem.answer, f"{problem.answer} or so", "7"):
            items.append((response(answer), problem))
            expected.append(library.score_answer(answer, entry))
    scores = pool.score(items, RewardWeights(format=0.0))
    assert [score.reward for score in scores] == [score.environment_score for score in scores] == expected
    assert [score.correct for score in scores] == [value >= 1 for value in expected]
    assert {problem.subject for _, problem in items} == set(TEN)
    assert {score.verdict for score in scores} == {Verdict.CORRECT, Verdict.WRONG}
    assert any(0 < value < 1 for value in expected)  # a partial score is a reward, and not correct


@NEEDS_GYM
@pytest.mark.parametrize("name", ["spiral_matrix", *(pytest.param(name, marks=pytest.mark.slow) for name in EVAL)])
def test_an_answer_that_a_scorer_evaluates_does_no_harm(pool: VerifierPool, name: str, tmp_path: Path) -> None:
    """The scorers of these tasks call eval on the answer."""
    path = tmp_path / "file"
    problem = load(f"gym:{name}?size=1")[0]
    system, write = f"__import__('os').system('touch {path}')", f"[open('{path}', 'w')]"
    answers = [system, write, "[exit()]", "'a' * 10**11", "[sum(range(10**12))]"]
    form = [("", problem), (f"<answer>{problem.answer}</answer>", problem)]
    items = [*((response(text), problem) for text in answers), (response(problem.answer), problem), *form]
    scores = pool.score(items)
    assert outcomes(scores[5:]) == [(Verdict.CORRECT, 1.0), (Verdict.NO_ANSWER, 0.0), (Verdict.MALFORMED, 0.0)]
    assert not any(score.correct for score in scores[:5]) and not path.exists()
    assert (scores[0].verdict, scores[4].verdict) == (Verdict.CRASHED, Verdict.TIMED_OUT)


FORGED = {"result": {"verdict": "correct", "layer": "environment", "seconds": 0.0, "environment_score": 1.0}}
BYTES = repr(json.dumps({**FORGED, "cpu": 0.0}) + "\n") + ".encode()"
IMPORT = "_\uff3fimport_\uff3f"  # `__import__` for Python's parser
OS = "getattr(Random.seed, '_'+'_globals_'+'_')['_os']"
FORGERIES = {  # what code in an answer tries, with N for a descriptor
    "write its result under a name in other letters": f"[{IMPORT}('os').write(N, {BYTES})]",
    "write it by attributes": f"[getattr({OS}, 'write')(N, {BYTES})]",
    "write it and end the process": f"[{IMPORT}('os').write(N, {BYTES}), {IMPORT}('os')._exit(0)]",
    "write several": f"[{IMPORT}('os').write(N, {BYTES} * 3)]",
    "write no JSON": f"[{IMPORT}('os').write(N, b'x\\n')]",
    "find what sends results": f"[f[0].f_locals['channel'].send(**{FORGED}) for f in {IMPORT}('inspect').stack()[-2:]]",
    "read the next item": f"[{IMPORT}('os').read(0, 1)]",
}


@NEEDS_GYM
@pytest.mark.parametrize("forgery", FORGERIES)
def test_code_in_an_answer_neither_writes_its_score_nor_moves_those_of_others(pool: VerifierPool, forgery: str) -> None:
    problem = load("gym:spiral_matrix?size=1")[0]
    texts = [FORGERIES[forgery].replace("N", str(descriptor)) for descriptor in range(3, 7)]
    scores = pool.score([(response(text), problem) for code in texts for text in (code, "7", problem.answer)])
    assert not any(score.correct for score in scores[::3])
    assert outcomes(scores[1::3]) == [(Verdict.WRONG, 0.0)] * 4
    assert outcomes(scores[2::3]) == [(Verdict.CORRECT, 1.0)] * 4


@NEEDS_GYM
def test_answers_that_a_scorer_evaluates_keep_their_scores(pool: VerifierPool) -> None:
    """Lists, and expressions for sympy's parser, which itself evaluates code from strings."""
    matrix, integral, numbers = (
        load(f"gym:{name}?size=1")[0] for name in ("spiral_matrix", "simple_integration", "countdown")
    )
    items = [
        (str(matrix.answer.split()), matrix),
        (f"{integral.answer}*1.0", integral),
        (f"0+{numbers.answer}", numbers),
    ]
    scores = pool.score([(response(text), problem) for text, problem in items])
    assert [score.environment_score for score in scores][:2] == [0.1, 1.0]
    assert scores[2].environment_score and scores[2].verdict is not Verdict.CRASHED


@pytest.mark.parametrize("columns", [{}, {"environment": {"name": "{}", "env_python": "./evil.sh", "row": 0}}])
def test_a_problem_without_its_environment_is_refused(pool: VerifierPool, columns: dict[str, object]) -> None:
    problem = Problem("p", "?", "1", verifier="environment", columns=columns)
    with pytest.raises(ValueError, match=r"'p' .*'environment'"):
        pool.score([(response("1"), problem)])


SCORER = """#!{python}
import json, sys
print(json.dumps({{"ready": True}}), flush=True)
for line in sys.stdin:
    batch = json.loads(line)
    for number, (name, row, response, answer) in zip(batch["numbers"], batch["items"], strict=True):
        score = float(json.loads(name)["name"] == "mine" and row == "3" and json.loads(answer) == "4")
        result = {{"verdict": "correct" if score else "wrong", "layer": "environment", "seconds": 0.1}}
        of_item = {{"token": batch["token"], "number": number}}
        print(json.dumps({{"result": {{**result, "environment_score": score}}, **of_item}}), flush=True)
"""


def test_problems_in_the_file_of_a_run_are_graded_by_their_environment(pool: VerifierPool, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text(SCORER.format(python=sys.executable))
    program.chmod(0o755)
    places = [EnvironmentRow(environment_name("gym:mine", "train", ""), str(program), row) for row in (3, 5)]
    rows = [
        Problem(f"mine/{place.row}", "2+2?", "4", verifier="environment", columns={"environment": place})
        for place in places
    ]
    write_jsonl(file := tmp_path / "problems.jsonl", rows)
    problems = load(written_spec(file, rows))
    scores = pool.score([(response("4"), problem) for problem in problems])
    assert outcomes(scores) == [(Verdict.CORRECT, 1.0), (Verdict.WRONG, 0.0)]
    assert [score.layer for score in scores] == ["environment"] * 2


def test_a_rubric_scores_the_whole_response_with_its_weights(pool: VerifierPool, python: Path) -> None:
    first, second = load(f"env:sums?size=4&env_python={python}", limit=2)
    items = [(response("4"), first), (response("7"), first), ("<answer>5</answer>", second), ("?", second)]
    scores = pool.score(items, RewardWeights(format=0.0))
    assert outcomes(scores) == [
        (Verdict.CORRECT, 1.5), (Verdict.WRONG, pytest.approx(0.35)), (Verdict.CORRECT, 1.5), (Verdict.WRONG, 0.0)
    ]  # fmt: skip
    assert [score.reward for score in scores] == [score.parts["correct"] for score in scores]
    assert (scores[1].parts["rubric/exact"], scores[1].parts["rubric/near"]) == (0.0, pytest.approx(0.7))
    assert [score.extracted for score in scores] == ["4", "7", "5", None] and not scores[2].well_formed


@pytest.mark.slow
@pytest.mark.timeout(1200)  # the library is imported four times
def test_a_worker_that_hangs_or_dies_costs_no_other_item_its_score(pool: VerifierPool, python: Path) -> None:
    problem = load(f"env:sums?size=1&env_python={python}")[0]
    items = [(response(text), problem) for text in ("4", "spin", "4", "die", "4", "sleep", "4")]
    scores = pool.score(items, RewardWeights(format=0.0))
    assert [score.verdict for score in scores][1::2] == [Verdict.TIMED_OUT, Verdict.CRASHED, Verdict.TIMED_OUT]
    assert outcomes(scores)[::2] == [(Verdict.CORRECT, 1.5)] * 4
    assert outcomes(pool.score(items[:1])) == [(Verdict.CORRECT, 1.5)]  # a worker that was ended is started again
    os.kill(pool.environment_pids[0], signal.SIGKILL)
    assert outcomes(pool.score(items[:1])) == [(Verdict.CORRECT, 1.5)]


@pytest.mark.slow
def test_rewards_of_an_environment_are_those_of_the_librarys_own_rollout(pool: VerifierPool, python: Path) -> None:
    problems = load(f"env:sums?size=4&env_python={python}")
    rows = [(n, text) for n in range(4) for text in (response(str(n + 4)), response("9"), "<answer>x</answer>", "")]
    scores = pool.score([(text, problems[n]) for n, text in rows], RewardWeights(format=0.0))
    assert [score.reward for score in scores] == library_rewards(python, [(n, [text]) for n, text in rows])
    assert len({score.reward for score in scores}) > 3


Rollouts = Sequence[tuple[int, Sequence[str]]]  # (number of a problem, turns)


def played(
    pool: VerifierPool, problems: Sequence[Problem], rollouts: Rollouts
) -> tuple[list[str], list[list[str | None]]]:
    """The states of rollouts at their ends, and the replies to each."""
    states, replies = [""] * len(rollouts), [list[str | None]() for _ in rollouts]
    for number in range(max(len(turns) for _, turns in rollouts)):
        going = [place for place, (_, turns) in enumerate(rollouts) if number < len(turns)]
        jobs = [(problems[rollouts[k][0]], (states[k], "7", rollouts[k][1][number], "stop")) for k in going]

        def on_reply(place: int, reply: str | None, state: str, going: list[int] = going) -> None:
            replies[going[place]].append(reply)
            states[going[place]] = state

        pool.reply(jobs, on_reply)
    return states, replies


def call(name: str, **arguments: object) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def called(text: str, *calls: str) -> dict[str, object]:
    """The fields of the library's message for a text and the calls behind it."""
    texts = [json.loads(one.removeprefix("<tool_call>").removesuffix("</tool_call>")) for one in calls]
    own = [{"id": "c", "name": one["name"], "arguments": json.dumps(one["arguments"])} for one in texts]
    return {"content": text or None, "tool_calls": own}


@pytest.mark.parametrize("is_stateful", [False, True])
def test_calls_of_the_tools_of_an_environment_are_answered_and_scored_as_in_the_librarys_own_rollout(
    pool: VerifierPool, python: Path, is_stateful: bool
) -> None:
    problems = load(f"env:calls?size=16&is_stateful={json.dumps(is_stateful)}&env_python={python}")
    tools = [json.loads(line)["function"]["name"] for line in tools_of(problems[0]).splitlines()]
    assert tools == (["add", "remember"] if is_stateful else ["add"])
    nine, noted, broken = call("add", a=5, b=4), call("remember", number=3), "<tool_call>{'name': 1}</tool_call>"
    faulty = call("subtract", a=1, b=2), call("add", a=1), call("add", a="x", b=1)
    rollouts = [
        (5, [f"Let me add.\n{nine}", response("9")]),
        (5, [nine + noted + call("remember", number=4), response("8")]),
        (2, ["".join(faulty), nine, nine]),
        (0, [response("4")]),
        (1, [f"{nine} {broken}"]),  # none of a turn's calls counts where one of them is no call
        (3, [response("7") + call("add", a=[], b=[9]).removesuffix("</tool_call>"), response("7")]),
        (4, [call("add", a=4, b=5) + response("8"), "no more"]),
    ]
    messages = [
        (5, [called("Let me add.\n", nine), response("9")]),
        (5, [called("", nine, noted, call("remember", number=4)), response("8")]),
        (2, [called("", *faulty), *[called("", nine)] * 2]),
        (0, [response("4")]),
        (1, [f"{nine} {broken}"]),
        (3, [called(response("7"), call("add", a=[], b=[9])), response("7")]),
        (4, [called("", call("add", a=4, b=5)), "no more"]),
    ]
    states, replies = played(pool, problems, rollouts)
    assert replies[0] == ["<tool_response>\n9\n</tool_response>", None] and replies[3] == replies[4] == [None]
    remembered = ["1 remembered", "2 remembered"] if is_stateful else ["'remember'"] * 2
    assert replies[1][0] == "\n".join(f"<tool_response>\n{text}\n</tool_response>" for text in ["9", *remembered])
    first = str(replies[2][0])
    assert first.count("<tool_response>") == 3 and "'subtract'" in first and "missing" in first
    assert len(replies[2]) == 3 and replies[2][-1] is None  # max_turns
    items = [(turns[-1], problems[n]) for n, turns in rollouts]
    scores = pool.score(items, RewardWeights(format=0.0), states=states)
    assert [score.reward for score in scores] == library_rewards(python, messages, "calls", is_stateful=is_stateful)
    assert [score.parts["rubric/total_tool_calls"] for score in scores] == [1, 3, 5, 0, 0, 1, 1]
    assert scores[0].reward == pytest.approx(1.1) and scores[1].reward == pytest.approx(0.17 if is_stateful else 0.1)


PAGE = Path(__file__).parents[2] / "docs" / "TOOLS.md"


def test_turns_of_the_pages_environment_are_those_of_the_librarys_own_rollout(pool: VerifierPool, python: Path) -> None:
    blocks = [part.partition("```")[0] for part in PAGE.read_text().split("```python\n")[1:]]
    (python.parent / "guess.py").write_text(next(code for code in blocks if "MultiTurnEnv" in code))
    problems = load(f"env:guess?size=16&env_python={python}")
    rows = [(0, ["1"]), (3, ["9", "x", "4"]), (5, ["20", "6"]), (2, ["1"] * 6), (7, ["", "8"])]
    rollouts = [(n, [response(turn) for turn in turns]) for n, turns in rows]
    states, replies = played(pool, problems, rollouts)
    assert replies[1] == ["That is too high. Guess again.", "That is no number. Guess again.", None]
    assert replies[0] == [None] and replies[3][-1] is None and len(replies[3]) == 6
    items = [(turns[-1], problems[n]) for n, turns in rollouts]
    scores = pool.score(items, RewardWeights(format=0.0), states=states)
    assert [score.reward for score in scores] == library_rewards(python, rollouts, "guess")
    assert {score.reward for score in scores} == {0.0, 1.0}
    (cut,) = pool.score(items[:1], states=["failed: crashed, RuntimeError: no service"])
    assert cut.verdict is Verdict.CRASHED and "no service" in cut.layer
    with pytest.raises(ValueError, match=problems[0].id.replace("?", r"\?")):
        pool.score(items[:1])


@pytest.mark.slow
def test_a_reward_function_that_fails_is_a_crash_and_counts_zero(pool: VerifierPool, python: Path) -> None:
    problem = load(f"env:sums?size=1&fault=raise&env_python={python}")[0]
    (score,) = pool.score([(response("4"), problem)])
    assert outcomes([score]) == [(Verdict.CRASHED, 1.0)] and "no judge" in score.layer


@NEEDS_GYM
@pytest.mark.slow
@pytest.mark.parametrize("name", ["isomorphic_strings", "knight_swap", "ransom_note", "rearc"])
def test_problems_that_depend_on_the_order_of_sets_are_those_that_are_graded(pool: VerifierPool, name: str) -> None:
    problems = load(f"gym:{name}?size=5")
    scores = pool.score([(response(problem.answer), replace(problem, answer="")) for problem in problems])
    assert outcomes(scores) == [(Verdict.CORRECT, 1.0)] * 5
