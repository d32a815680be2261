"""What a question says about its answer: each convention with answers that it accepts and refuses."""

import pytest

from data.problem import Problem
from verifiers import Verdict, VerifierPool, grade, score_response
from verifiers.questions import Question, decode, encode, question_of, read_question

AMC = r"What is its volume? $\textbf{(A)}\ 12\pi\qquad\textbf{(B)}\ 24\pi\qquad\textbf{(C)}\ 36\pi$"
LINES = "Which is largest?\nA. $\\frac{1}{2}$\nB. $\\frac{2}{3}$\nC. $\\frac{3}{4}$\nD. none of these"
WORDS = "What shape is it? (A) circle (B) square (C) triangle"

# question, gold, answer, correct with the question, correct without it
CASES = [
    (AMC, "B", r"24\pi", True, False),
    (AMC, "B", r"24\pi \text{ cm}^3", True, False),
    (AMC, "B", r"36\pi", False, False),
    (AMC, "B", r"\textbf{(B)}", True, True),
    (AMC, r"24\pi", "B", True, False),
    (AMC, r"24\pi", "C", False, False),
    (AMC, r"24\pi", "D", False, False),
    (AMC, "B", r"(B)\ 24\pi", True, True),
    (AMC, "B", r"(B)\ 36\pi", False, True),
    (AMC, "B", r"Option B: $36\pi$", False, True),
    (LINES, "C", "0.75", True, False),
    (LINES, "C", r"\frac{2}{3}", False, False),
    (LINES, r"\frac{3}{4}", "C", True, False),
    (WORDS, "B", "square", True, False),
    (WORDS, "B", "circle", False, False),
    (WORDS, "B", "(B) circle", False, True),
    (WORDS, "B", "(A) square", False, False),
    (WORDS, "B", "square (A)", False, False),
    (WORDS, "B", "B. circle", False, True),
    (WORDS, r"\text{square}", "(B) square", True, False),
    (WORDS, r"\text{square}", "(A) square", False, True),
    (WORDS, "(B) square", "B", True, True),
    (AMC, r"24\pi", r"(C)\ 24\pi", False, True),
    (AMC, r"24\pi", r"24\pi or (C)", False, False),
    ("Which? (a) $y = x$. (b) $y = 2x$. (c) $y = 3x$.", "(b)", "(b) $y = 2x$", True, True),
    ("Which? (a) $y = x$. (b) $y = 2x$. (c) $y = 3x$.", "(b)", "(c) $y = 2x$", False, False),
    ("How many minutes does it take?", "120", "2 hours", True, False),
    ("How many minutes does it take?", "120", "120 minutes", True, True),
    ("How many minutes does it take?", "120", "120 hours", False, True),
    ("Find the area in square meters.", "3", r"30000\text{ cm}^2", True, False),
    ("How many minutes has she walked?", "200", "200 minutes", True, True),
    ("How many hours in total does she sleep?", "35", "35 hours", True, True),
    ("How many eggs does she sell in a week?", "42", "42 eggs", True, True),
    ("Find the area in square meters.", "3", "3 m", False, True),
    ("List the values in increasing order.", "1, 2, 3", "1, 2, 3", True, True),
    ("List the values in increasing order.", "1, 2, 3", "3, 2, 1", False, True),
    ("Find the ordered pair.", "(1, 2)", "1 < x < 2", False, True),
    ("Find the ordered pair.", "(1, 2)", "x = 1, y = 2", True, True),
    ("Answer in interval notation.", "(1, 2)", "x = 1, y = 2", False, True),
    ("Answer in interval notation.", "(1, 2)", "1 < x < 2", True, True),
]


# question, gold, answers that are the question said back, other answers that are right
SAID_BACK = [
    (r"Simplify $\sqrt{242}$.", r"11\sqrt2", [r"\sqrt{\frac{484}{2}}", r"\sqrt{(241+1)}"], [r"2^{1/2} \cdot 11"]),
    ("Simplify $19x + 1 - 4x - 81$.", "15x - 80", ["(18+1)x + 1 - (3+1)x - 81"], ["5(3x - 16)"]),
    (r"Write $1.\overline{27}$ as a fraction.", r"\frac{14}{11}", [], [r"\frac{28}{22}"]),
    ("Expand ${(x+2)(x+5)}$.", "x^2 + 7x + 10", ["(x+2)(x+5)", "(5+x)(2+x)", "y=(x+2)(x+5)"], ["10+7x+x^2"]),
    ("Expand ${(x+2)(x+5)}$.", "x^2 + 7x + 10", ["1(x+2)(x+5)+x-x", r"\frac{2(x+2)(x+5)}{2}", "x(x+7)+10"], []),
    (
        "Factor $t^2-49$.",
        "(t-7)(t+7)",
        ["t^2-49", "-(49-t^2)", "t^2-7^2", "7(t^2/7-7)", r"t^2-49 \approx t^2-49"],
        ["(t+7)(t-7)", "t^2-49=(t-7)(t+7)"],
    ),
    ("Factor $9y^2-30y+25$.", "(3y-5)^2", ["9(y^2-10y/3)+25"], ["(5-3y)^2", r"9(y-\frac53)^2", "(3y-5)(3y-5)"]),
    ("Factor $x^4-1$.", "(x-1)(x+1)(x^2+1)", ["(x^2-1)(x^2+1)"], ["(x^2+1)(x-1)(1+x)"]),
    (
        r"Simplify $\sqrt{242}$.",
        r"11\sqrt2",
        [r"\sqrt{242}", r"\sqrt{242}=\sqrt{242}", "242^{1/2}", r"(A) \sqrt{242}\cdot i^4+\sin\pi"],
        [r"\sqrt2\cdot 11"],
    ),
    (r"Write $\frac{3}{20}$ as a decimal.", "0.15", [r"\frac{3}{20}", "3/20"], [".15", "15%"]),
    (r"Write $1.\overline{27}$ as a fraction.", r"\frac{14}{11}", [r"1.\overline{27}"], [r"1\frac{3}{11}"]),
    ("Solve $2x+3=9$.", "x=3", ["2x+3=9", "2x+3-9=0"], ["3", "x = 3"]),
    (r"Solve $|x-1|<3$.", "(-2,4)", ["|x-1|<3"], ["-2<x<4"]),
    ("Let $a+b+c=0$. Find the maximum.", "0", ["a+b+c=0"], ["0", "x=0"]),
    (
        r"Compute $\cos 75^\circ$.",
        r"\frac{\sqrt6-\sqrt2}{4}",
        [r"\cos 75^\circ", r"\sin 15^\circ"],
        [r"\frac{\sqrt6}4-\frac{\sqrt2}4"],
    ),
    (r"Compute $4\cos 75^\circ$.", r"\sqrt6-\sqrt2", [r"4\sin 15^\circ"], [r"\sqrt2(\sqrt3-1)"]),
    (r"Express $408 \mathrm{~nm}$ in angstroms.", "4080", [r"408 \mathrm{~nm}"], ["4080"]),
    (r"Find $\frac{d}{dx} x^3$.", "3x^2", [r"\frac{d}{dx} x^3"], [r"3x\cdot x"]),
    (
        r"Simplify $\sqrt{48}$.",
        r"4\sqrt3",
        [
            r"e^{\ln\sqrt{48}}", r"\ln e^{\sqrt{48}}", r"\exp(\ln\sqrt{48})", r"\sqrt{\sqrt{48}^2}",
            r"\log_2 2^{\sqrt{48}}",
        ],
        [r"\sqrt3\cdot4", r"2\sqrt{12}"],
    ),
    (
        r"Simplify $\sqrt{50}+\sqrt{8}$.",
        r"7\sqrt2",
        [
            r"\frac{\sqrt{50}+\sqrt{8}+\sqrt{50}+\sqrt{8}}{2}", r"2(\sqrt{50}+\sqrt{8})-(\sqrt{50}+\sqrt{8})",
            r"\frac{(\sqrt{50}+\sqrt{8})^2}{\sqrt{50}+\sqrt{8}}", r"\binom{\sqrt{50}+\sqrt{8}}{1}",
            r"\left(\frac{1}{\sqrt{50}+\sqrt{8}}\right)^{-1}",
        ],
        [r"5\sqrt2+2\sqrt2", r"\frac{14}{\sqrt2}", r"\sqrt{50}+\sqrt{8} = 7\sqrt2"],
    ),
    (
        r"Simplify $\frac{x^2-9}{x-3}$.",
        "x+3",
        [
            r"\sum_{k=1}^{1} \frac{x^2-9}{x-3}", r"\frac{x^2-9}{x-3} - 0 \cdot x", r"\int_0^1 \frac{x^2-9}{x-3} dt",
            r"\frac{x^2-9}{2(x-3)}+\frac{x^2-9}{2(x-3)}",
        ],
        ["3+x", r"\frac{x^2-9}{x-3} = x+3"],
    ),
    ("What is twice $x+1$, plus $x+1$?", "3x+3", [], ["3(x+1)", "2(x+1)+(x+1)"]),
    ("How many cubic feet are in one cubic yard?", "27", ["one cubic yard", "1 yd^3"], ["27 cubic feet", "46656 in^3"]),
    ("It took 2.25 hours. How many minutes?", "135", ["2.25 hours"], ["135 min", "2 hours 15 minutes"]),
    ("Of 60 minutes he slept 30 minutes. How many minutes is that?", "30", [], ["30 minutes", "0.5 hours"]),
    (r"Let $t = \sqrt2+1$. Find $t+\sqrt2$.", r"2\sqrt2+1", [], [r"\sqrt2+1+\sqrt2"]),
    ("What is $84$ shared by $2$?", "42", ["84/2", r"\frac{84}{2}", r"-\frac{84}{-2}"], ["42.0", "126/3"]),
    ("What part of $84$ is $2$?", r"\frac{1}{42}", [], [r"\frac{2}{84}"]),
    ("Two friends share 84 plums. How many has each?", "42", ["84/2", "84/2 plums", "84 ÷ 2"], ["42 plums", "126/3"]),
    ("Solve $2x^2-5x+2=0$.", r"2, \frac{1}{2}", [], [r"\frac{1}{2}, 2", r"x = 2 or x = \frac12"]),
    (r"Write $\frac{57}{160}$ as a decimal.", ".35625", [r"\frac{57}{160}"], ["0.35625", ".356250"]),
    # what is no question said back: the gold's own form, the value of a named quantity, a value with its unit
    (r"Which is largest: $\sqrt2$, $\frac32$, $1.2$?", r"\frac{3}{2}", [], [r"\frac32", "3/2", "1.5"]),
    ("Is $2x+1$ or $x+3$ larger for large $x$?", "2x+1", [], ["2x+1", "1+2x"]),
    (r"In a triangle $A = 60^\circ$ and $B = 60^\circ$; find $C$.", "60", [], [r"60^\circ", "60", r"C = 60^\circ"]),
    ("A square of side $r=3$ cm; find its inradius doubled.", r"3\text{ cm}", [], ["3", "3 cm"]),
    (LINES, r"\frac{3}{4}", [], ["C", "0.75", r"\frac34"]),
]  # fmt: skip


@pytest.mark.parametrize(("question", "gold", "wrong", "right"), SAID_BACK)
def test_a_formula_of_the_question_is_no_answer(question: str, gold: str, wrong: list[str], right: list[str]) -> None:
    assert [answer for answer in wrong if grade(answer, gold, question=question)] == []
    assert [answer for answer in (*right, gold) if not grade(answer, gold, question=question)] == []


@pytest.mark.parametrize(("question", "gold", "answer", "is_correct", "is_correct_alone"), CASES)
def test_question_decides_as_its_convention_says(
    question: str, gold: str, answer: str, is_correct: bool, is_correct_alone: bool
) -> None:
    assert bool(grade(answer, gold, question=question)) is is_correct
    assert bool(grade(answer, gold)) is is_correct_alone


def test_worker_uses_the_question_of_a_problem() -> None:
    problem = Problem("", AMC, "B")
    near = Problem("", "How long is it?", "3.14", columns={"error": "1e-2"})
    with VerifierPool(workers=1) as pool:
        answers = ((r"24\pi", problem), (r"36\pi", problem), ("3.149", near), ("3.16", near))
        items = [(f"<think>a</think><answer>{answer}</answer>", each) for answer, each in answers]
        assert [score.correct for score in pool.score(items)] == [True, False, True, False]


def test_tolerance_is_that_of_the_problem_only() -> None:
    question = question_of(Problem("", "", "3.14", columns={"tolerance": 0.01}))
    assert question.tolerance == "0.01"
    assert grade("3.145", "3.14", question=question)
    assert not grade("3.151", "3.14", question=question)
    assert grade(r"\pi", "3.14", question=question)
    assert not grade("3.145", "3.14")
    for value in (None, "", "0", "none", "-1"):
        assert question_of(Problem("", "", "1", columns={"error": value})) == Question()


def test_choices_are_read_in_their_order() -> None:
    assert read_question(AMC).choices == (("A", r"12\pi"), ("B", r"24\pi"), ("C", r"36\pi"))
    assert read_question(LINES).choices[3] == ("D", "none of these")
    for text in ("Let (A) be a set.", "Points (A), then (C).", "", "See part (B) and (A)."):
        assert not read_question(text).choices


def test_question_survives_the_way_to_a_worker() -> None:
    for text in (AMC, LINES, "How many minutes?", "", "In which order?"):
        assert decode(encode(read_question(text))) == read_question(text)
    assert encode(Question()) == ""


def test_question_does_not_open_the_size_limits() -> None:
    assert grade("(" * 50 + "5" + ")" * 50, "5", question=AMC).verdict is Verdict.REFUSED


def test_a_tolerance_in_per_cent_is_a_share_of_the_gold() -> None:
    question = question_of(Problem("", "", "4.5e33", columns={"tolerance": "2%"}))
    assert question.tolerance == "2%"
    for answer in ("4.5e33", r"4.58 \times 10^{33}", r"4.42 \times 10^{33}"):
        assert grade(answer, "4.5e33", question=question)
    for answer in (r"4.6 \times 10^{33}", r"4.5 \times 10^{32}", "-4.5e33", "4.5", "4.58"):
        assert not grade(answer, "4.5e33", question=question)
    assert grade("-98.5", "-100", question=question) and not grade("-97.5", "-100", question=question)
    assert not grade(r"4.58 \times 10^{33}", "4.5e33")


def test_a_tolerance_converts_units_and_leaves_no_arithmetic_to_do() -> None:
    question = Question(tolerance="0.1")
    assert grade("5.05 cm", "5 cm", question=question) and grade("50.5 mm", "5 cm", question=question)
    assert not grade("5.05 mm", "5 cm", question=question) and not grade("5.05 s", "5 cm", question=question)
    assert not grade("2+3", "5", question=question)
    assert not grade("2+3", "5 cm", question=question) and not grade("5%", "5 cm", question=question)
    assert not grade("5.05, 7", "5", question=question) and not grade("5.05x", "5", question=question)


@pytest.mark.parametrize(
    ("gold", "right", "wrong"),
    [
        ("60", [r"60^\circ", "60.05°", "60%"], ["6000%", r"\pi/3", "59°"]),
        (r"60^\circ", ["60", "60.05°", r"\pi/3"], ["57°", "64°", "1.05"]),
        (r"25\%", ["25", "25.05", "25.05%", "0.25"], ["34%", "26%", "2500%"]),
    ],
)
def test_a_tolerance_is_of_the_number_in_front_of_a_sign(gold: str, right: list[str], wrong: list[str]) -> None:
    question = Question(tolerance="0.1")
    assert [answer for answer in (*right, *wrong) if grade(answer, gold, question=question)] == right


def test_a_list_has_one_tolerance_or_one_for_each_value() -> None:
    one = Question(tolerance="0.001")
    assert grade("0.002, 5.234", "0.003, 5.233", question=one)
    assert grade("5.234, 0.002", "0.003, 5.233", question=one)
    assert not grade("0.005, 5.234", "0.003, 5.233", question=one)
    assert not grade("0.003", "0.003, 5.233", question=one)
    assert not grade("0.003, 5.233, 6", "0.003, 5.233", question=one)
    assert not grade("0.003, 0.0031", "0.003, 5.233", question=one)  # one value for both
    for column in ([1e34, 0.001], "1e34, 0.001", "1e34,0.001"):
        two = question_of(Problem("", "", "", columns={"error": column}))
        assert grade(r"0.001, 7.1 \cdot 10^{35}", r"7 \times 10^{35}, 0.002", question=two)
        assert not grade(r"0.004, 7.1 \cdot 10^{35}", r"7 \times 10^{35}, 0.002", question=two)
    assert not grade("1.05", "1", question=Question(tolerance="0.1, 0.1"))  # not as many as values: exact


def test_the_components_of_a_tuple_are_near_in_their_order() -> None:
    near = Question(tolerance="0.1")
    assert grade("(1.05, 2.05)", "(1, 2)", question=near)
    assert not grade("(2.05, 1.05)", "(1, 2)", question=near)
    assert not grade("[1.05, 2.05]", "(1, 2)", question=near)
    assert not grade("1.05, 2.05, 3", "(1, 2)", question=near)
    ordered = Question(tolerance="0.1", form="order")
    assert grade("1.05, 2.05", "1, 2", question=ordered) and not grade("2.05, 1.05", "1, 2", question=ordered)


def test_a_response_is_scored_by_its_question() -> None:
    for answer, is_correct in ((r"24\pi", True), (r"36\pi", False), (r"(B)\ 36\pi", False)):
        response = f"<think>a</think><answer>{answer}</answer>"
        assert score_response(response, "B", question=AMC).correct is is_correct
        assert not score_response(response, "B").correct or answer.startswith("(B)")
    near = Question(tolerance="1%")
    undecided = r"<think>a</think><answer>\int_0^1 \sin(x^2)\,dx</answer>"  # needs algebra: graded by a worker
    assert score_response("<think>a</think><answer>3.15</answer>", "3.14", question=near).correct
    assert not score_response(undecided, "3.14", question=near).correct
