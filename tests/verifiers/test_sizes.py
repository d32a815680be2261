"""Hostile lengths: everything that reads a whole response is linear in time and memory, and has a size limit."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from data.boxes import box_contents, box_spans
from tests.verifiers.test_pool import ENDLESS, problem
from verifiers import Verdict, VerifierPool, score_response
from verifiers.extract import extract_answer, num_answers
from verifiers.limits import MAX_RESPONSE_CHARACTERS
from verifiers.normalise import canonical

CHECKOUT = Path(__file__).parents[2]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel sets no limit of the address space")

# (opening, closing): each is repeated, and nested around an answer.
PAIRS = [
    (r"\boxed{", "}"), (r"\fbox{", "}"), (r"\text{", "}"), (r"\frac{1}{", "}"), ("{", "}"), ("(", ")"), ("[", "]"),
    ("<", ">"), (r"\left(", r"\right)"), (r"\{", r"\}"), (r"\[", r"\]"), ("$", "$"), ("<think>", "</think>"),
    ("<answer>", "</answer>"), ("</answer>", "<answer>"), ("#### ", "\n"), ("9,", "1/"), ("\\", "\\"), ("```", "```"),
    ("answer is ", "½^"), (r"\hspace{3}\n", "-"),
]  # fmt: skip

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
from data import Problem
from tests.verifiers.test_sizes import PAIRS, hostile
from verifiers import VerifierPool
from verifiers.extract import EXTRACTORS, num_answers, extract_answer

problem = Problem("p", "?", "5", "test", "test")
with VerifierPool(seconds=60) as pool:
    for length in (10_000, 100_000, 1_000_000, 10_000_000):
        for opening, closing in PAIRS:
            for response in hostile(opening, closing, length):
                num_answers(response)
                for policy in EXTRACTORS:
                    extract_answer(response, policy)
                pool.score([(response, problem)])
    print(dict(pool.counts), pool.restarts)
"""


def hostile(opening: str, closing: str, length: int) -> list[str]:
    """Responses of about `length` characters: nested pairs around an answer, in the strict form, and openings alone."""
    depth = length // (len(opening) + len(closing))
    nested = opening * depth + "5" + closing * depth
    return [f"<think>a</think><answer>{nested}</answer>"[:length], opening * (length // len(opening))]


@LINUX
@pytest.mark.timeout(600)
def test_hostile_lengths_are_graded_under_a_fixed_memory_limit() -> None:
    script = LIMITED.replace("MEMORY", str(1024 * 2**20))
    done = subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "crashed" not in done.stdout and "timed_out" not in done.stdout and done.stdout.split()[-1] == "0"


@LINUX
@pytest.mark.timeout(300)
def test_grade_file_keeps_the_verdicts_around_hostile_lines(tmp_path: Path) -> None:
    nested = r"\boxed{" * 40_000 + "5" + "}" * 40_000
    hostile_rows = {  # response, its gold, the verdicts that it may have
        "nested boxes": (f"<think>a</think><answer>{nested}</answer>", r"\sqrt{25}", {"correct"}),
        "ten million characters": ("x" * 10_000_000, r"\sqrt{25}", {"refused"}),
        "endless algebra": (f"<think>a</think><answer>{ENDLESS}</answer>", "x", {"timed_out"}),
        "a lone surrogate": ("<think>a</think><answer>\udcff</answer>", r"\sqrt{25}", {"no_answer"}),
        "digits": (int("9" * 4_000), r"\sqrt{25}", {"malformed"}),
    }
    lines, expected = [], []
    for row in hostile_rows.values():
        for text, gold, allowed in (("<answer>7</answer>", "7", {"malformed"}), row):
            lines.append(json.dumps({"response": text, "gold": gold}))
            expected.append(allowed)
        lines.append(json.dumps({"answer": "7", "gold": "7"}))
        expected.append({"correct"})
    file, out = tmp_path / "rows.jsonl", tmp_path / "verdicts.json"
    file.write_text("\n".join(lines), "utf-8")
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))\n"
        "from reasoner.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "grade", str(file), "--json", str(out)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    verdicts = [row["verdict"] for row in json.loads(out.read_text("utf-8"))]
    assert len(verdicts) == len(expected)
    assert [v for v, allowed in zip(verdicts, expected, strict=True) if v not in allowed] == []


def test_a_response_over_the_limit_is_refused_by_every_entry_point() -> None:
    response = "<think>a</think><answer>5</answer>".ljust(MAX_RESPONSE_CHARACTERS + 1)
    reason = "over 1000000 characters"
    assert extract_answer(response).reason == reason and num_answers(response) == 0
    alone = score_response(response, "5")
    with VerifierPool() as pool:
        (pooled,) = pool.score([(response, problem("5"))])
        (judgement,) = pool.judge([(response, "5")])
        assert pool.same([(response, response)]) == [False]
        assert not pool.pids  # no worker was started
    for graded in (alone, pooled, judgement):
        assert (graded.verdict, graded.layer) == (Verdict.REFUSED, reason)
    assert score_response(response[:-1], "5").correct


def test_a_batch_of_long_responses_costs_no_worker() -> None:
    items = [("<think>" + "\U0001f44d" * 900_000 + "</think><answer>5</answer>", problem("5"))] * 32
    with VerifierPool(seconds=60, memory_mib=256) as pool:
        assert [score.verdict for score in pool.score(items)] == [Verdict.CORRECT] * 32
        assert pool.restarts == 0


def test_a_timed_out_item_keeps_what_its_worker_extracted_under_every_policy() -> None:
    with VerifierPool(seconds=0.5) as pool:
        (box_result,) = pool.score([(rf"so \boxed{{{ENDLESS}}}", problem("x"))], extract="boxed")
        assert (box_result.verdict, box_result.extracted, box_result.well_formed) == (Verdict.TIMED_OUT, ENDLESS, True)


def test_spans_of_nested_boxes_do_not_overlap() -> None:
    text = r"\boxed{a \boxed{b} \boxed{c}} \boxed{d} \boxed{\boxed{e} \boxed{f}"
    assert box_contents(text) == ["b", "c", "d", "e", "f"]
    assert [text[start:end] for start, end in box_spans(text)] == box_contents(text)
    assert num_answers(r"\boxed{\boxed{5}}") == 1


@pytest.mark.parametrize("filling", [" ", "\n", "~", "$", r"\,"])
@pytest.mark.timeout(20)
def test_an_open_text_command_is_read_once(filling: str) -> None:
    canonical(r"\text{" + filling * 20_000 + "5")
