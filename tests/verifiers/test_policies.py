r"""Fixed policies, which a model in training finds within hours: what they earn on the benchmarks, row by row.

A paid row is justified where the answer is the gold's own value in the gold's form; every other one is listed in
JUSTIFIED with its reason. The default run plays a sample, `pytest -m slow` all policies on all problems.
"""

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from data import Problem
from data.boxes import final_answer
from verifiers import Verdict, VerifierPool
from verifiers.answer_text import formulas_in
from verifiers.equivalence import judge
from verifiers.maths import UndecidedError, without_algebra
from verifiers.questions import Question, question_of, read_question

BENCHMARKS = Path(__file__).parents[3] / "shared" / "benchmarks"
NAMES = (
    "aime24", "aime25", "amc22_23", "amc23", "gsm8k_test", "gsm8k_train_2000", "math500", "math_train_2000", "minerva",
    "olympiadbench_maths_en",
)  # fmt: skip
_CONSTANTS = r"""
200; 250; 256; 300; 360; 400; 500; 512; 600; 720; 800; 900; 1000; 1024; 2000; 5000; 10000; 0.5; 0.25; 0.1; 1.5; 2.5;
0.01; 1e-3; 10^6; 1/2; 1/3; 2/3; 1/4; 3/4; 1/5; 2/5; 3/5; 4/5; 1/6; 5/6; 3/2; 1/8; \sqrt{2}; \sqrt{3}; \sqrt2/2; \pi;
2\pi; \pi/2; \frac{\pi}{4}; e; i; 1+i; \infty; -\infty; \pm1; \pm\infty; ?; ...; -; %; \$; {}; \boxed{}; \text{};
\frac{}{}; \phantom{5}; \tag{5}; \label{5}; \frac{0}{0}; 1/0; 0/0; \hat{5}; none; None; DNE; nothing; does not exist;
undefined; no solution; no solutions; no real solutions; no answer; impossible; \emptyset; \varnothing; \{\};
\{\emptyset\}; (); []; (,); 8<x<-2; (1, 0); [1, 0]; x<0, x>1; all integers; all real numbers; all positive integers;
any integer; any even integer; every real number; \mathbb{R}; \mathbb{Z}; \mathbb{N}; (-\infty, \infty);
n \in \mathbb{Z}; n + 5, n \in \mathbb{Z}; 2k, k \in \mathbb{Z}; odd integers; all multiples of 2; powers of 2;
perfect squares; any x; all x; for all n; infinitely many; all; any; all primes; x; y; n; k; t; a; b; c; C; x = x;
0 = 0; 1 = 1; x = y; f(x); f(n); x = ?; y = x; f(x) = x; f(x) = c; n, n+1; a, b; (x, y); (a, b); (0, 0); (1, 1);
(1, 2); 0, 1; 1, 2; -1, 1; \{0\}; \{0, 1\}; [0, 1]; (0, 1); (0, \infty); A; B; C; D; E; (A); (C); A, B; yes; no; true;
false; yes or no; true or false; A or B; A or B or C or D or E; 0 or 1; 1 or 2; even or odd;
1, 2, 3, 4, 5, 6, 7, 8, 9, 10; between 0 and 100; 0 to 100; -1000 < x < 1000; about 5; I don't know; the answer;
answer; correct; the correct answer; see above; it depends; as above; the same; maybe; unknown; an integer; a number;
the number is an integer; positive; negative; even; odd; prime; circle; square; line; should be 5; x or y;
c for any constant c; a + b for any constants a, b
"""
CONSTANTS = tuple(dict.fromkeys(["", " ", *map(str, range(-12, 151)), *map(str.strip, _CONSTANTS.split(";"))]))

# Answers that name two values, and pairs of unequal golds.
_HEDGES = r"""
{a} or {b}; {a} {b}; {a}, {b}; {a} and {b}; {a}/{b}; {a} = {b}; {a} \to {b}; {a} \approx {b}; {a} ({b}); ({a}) {b};
{a} (or {b}); {a} (= {b}); {a} [{b}]; {a} (not {b}); not {a} but {b}; {a}. Alternatively, the answer is {b};
{a}. Or {b}.; {a} if so, else {b}; either {a} or {b}; from {a} to {b}; {a} - {b}; {a}: {b}; x = {a}, y = {b};
x = {a} or x = {b}; f(1) = {a}, f(2) = {b}; x is {a} and y is {b}; {a} is the answer or {b}; it is {a}, it is {b};
The answer is {a}. The answer is {b}.; Answer: {a} Answer: {b}; (A) {a} (B) {b}; A) {a} B) {b}; A: {a}, B: {b};
(i) {a} (ii) {b}; 1. {a} 2. {b}; {a} (A), {b} (B); \boxed{{{a}}} \boxed{{{b}}}; \boxed{{{a}, \boxed{{{b}}}}};
\begin{{cases}} {a} \\ {b} \end{{cases}}; \{{{a}\}} \cup \{{{b}\}}; {a} \mid {b}; {a} % {b}; \phantom{{{a}}} {b};
{a}_{{{b}}}; {a}^{{{b}}}; \underbrace{{{a}}}_{{{b}}}; \max({a}, {b}); \left.{a}\right|_{{{b}}}; {a} \choose {b};
{a}​{b}; {a} cm = {b} cm; {a} vs {b}; {a} also {b}; {a} 或 {b}; <b>{a}</b> {b}; **{a}** {b}; `{a}` {b}
"""
_PAIRS = r"""
5|42; 3|12; 1|2; -3|3; 0.5|0.25; 1/2|1/3; \frac12|\frac13; 2\sqrt3|3\sqrt2; \pi|2\pi; x+1|x-1; x^2|2x; n|n+1;
(1,2)|(2,1); [1,2]|(1,2); A|B; C|D; (B)|(C); yes|no; \text{even}|\text{odd}; x>2|x<2; 25\%|50\%; 60^\circ|30^\circ;
\emptyset|5; \infty|0; 101_2|110_2; y=2x+1|y=x; \{1,2\}|\{1,3\}; 2k+1|2k; \text{Alice}|\text{Bob}; 3+4i|3-4i; \ln2|\ln3
"""
HEDGES = tuple(map(str.strip, _HEDGES.split(";")))
PAIRS = [tuple(pair.strip().split("|")) for pair in _PAIRS.split(";")]

# Answers that are paid in another form than the gold's, by problem or gold, and why they are right.
JUSTIFIED = {
    ("0", r"\{0\}"): "the set of the only value",
    ("1,2", "1 or 2"): "both values",
    ("$f(n)=n$", "f(x) = x"): "the same function",
    ("2k", r"2k, k \in \mathbb{Z}"): "the same formula in the same letter",
    (r"45^\circ", r"\frac{\pi}{4}"): "in radians",
    (r"$45^{\circ}$", r"\frac{\pi}{4}"): "in radians",
    (r"90^\circ", r"\pi/2"): "in radians",
    (r"180^\circ", r"\pi"): "in radians",
    (r"360^\circ", r"2\pi"): "in radians",
    (r"20 \%", "1/5"): "as a share",
    (r"20\%", "1/5"): "as a share",
    (r"80 \%", "4/5"): "as a share",
    ("3:5", "3/5"): "a ratio as its quotient",
    ("1 : 2", "0.5"): "a ratio as its quotient",
    ("1 : 2", "1/2"): "a ratio as its quotient",
    ("52_8", "52"): "the base may be left out",
    ("40_9", "40"): "the base may be left out",
    ("66_8", "66"): "the base may be left out",
    ("24_{10}", "24"): "the base may be left out",
    ("43_5.", "43"): "the base may be left out",
    (r"\text{even}", "any even integer"): "says even",
    (r"\text{even}", r"2k, k \in \mathbb{Z}"): "says even",
    (r"\text{even}", "all multiples of 2"): "says even",
    (r"\text{odd}", "odd integers"): "says odd",
    (r"\$\dfrac23 \approx \$0.67", "2/3"): "the exact value of two in the gold",
    ("math/test/counting_and_probability/282", "0.5"): "1/2 as a decimal, a label of the drawing",
    ("gsm8k/train/6812", "she gave 8 of her bracelets away.  Back at school"): "8 by coincidence, in a sentence",
}

_NUMBER = re.compile(r"\d[\d,]*\.?\d*")
_WORDS = re.compile(r"\\(?:text|mbox|mathrm)\s*\{([^{}]*)\}(?:\^2)?")
_DECORATION = re.compile(r"\\(?:left|right|displaystyle|!|,|;|:| )|\^\{?\\circ\}?|\\?[%$]|\s|[.;?]$")
_FRACTION = re.compile(r"\\[dt]?frac\s*(?:\{([^{}]*)\}\s*\{([^{}]*)\}|(\d)\s?(\d))")


def problems(name: str) -> list[Problem]:
    path = BENCHMARKS / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"needs {path.name}")
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return [Problem(row["id"], row["question"], final_answer(row["answer"]), columns=row) for row in rows]


def of_the_question(question: str) -> dict[str, None]:
    """Each formula of a question and each side of it, all of them, the text, its numbers and simple sums of them."""
    formulas, numbers = formulas_in(question), _NUMBER.findall(question)
    sides = [side.strip(" .,") for formula in formulas for side in re.split(r"=|,|\\approx", formula)]
    joined = [sign.join(numbers) for sign in (", ", " or ", " + ", " - ", r" \cdot ")]
    answers = [*formulas, *sides, ", ".join(formulas), " or ".join(formulas), question, *numbers, *joined]
    return dict.fromkeys(answer[:1990] for answer in answers if answer.strip())


def is_own_form(answer: str, gold: str) -> bool:
    """Whether an answer is written as the gold is, up to spaces, units, a name in front and zeros behind the point."""
    return not _bare(answer).isdisjoint(_bare(gold))


def is_own_value(answer: str, gold: str) -> bool:
    """Whether both are one number, written out."""
    values = [{_number(each) for each in _bare(text)} - {None} for text in (answer, gold)]
    return not values[0].isdisjoint(values[1])


def is_choice(answer: str, question: str) -> bool:
    """Whether an answer is the letter or the text of a choice: a paid one is that of the gold."""
    choices = dict(read_question(question).choices)
    return answer.strip("() ,").upper() in choices or answer.casefold() in map(str.casefold, choices.values())


def _bare(text: str) -> set[str]:
    """A text without decorations, with its words and without them."""
    text = _FRACTION.sub(r"\1\3/\2\4", text.rpartition("=")[2])
    texts = [_DECORATION.sub("", _WORDS.sub(words, text)) for words in (r"\1", "")]
    return {re.sub(r"^\((.)\)$|[{},]|\.0+$", r"\1", each).casefold() for each in texts} - {""}


def _number(text: str) -> Fraction | None:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


@cache
def verdict(answer: str, gold: str, question: Question) -> Verdict | None:
    """The verdict; None where algebra must decide."""
    try:
        with without_algebra(5.0):
            return judge(answer, gold, "maths", question).verdict
    except UndecidedError:
        return None


@pytest.fixture(scope="module")
def pool() -> Iterator[VerifierPool]:
    with VerifierPool(workers=1, seconds=2.0) as workers:
        yield workers


def paid(pool: VerifierPool, rows: list[tuple[Problem, str]]) -> list[tuple[str, str, str]]:
    """(problem, gold, answer) of the rows that are paid with the question and are not the gold's own value."""
    judged = [(problem, answer, verdict(answer, problem.answer, question_of(problem))) for problem, answer in rows]
    open_rows = [(problem, answer) for problem, answer, known in judged if known is None]
    pairs = [(answer, problem.answer) for problem, answer in open_rows]
    results = pool.judge(pairs, questions=[question_of(problem) for problem, _ in open_rows])
    paid = [(problem, answer) for problem, answer, known in judged if known is Verdict.CORRECT]
    paid += [row for row, result in zip(open_rows, results, strict=True) if result]
    return [
        (problem.id, problem.answer, answer)
        for problem, answer in paid
        if not is_own_form(answer, problem.answer)
        and not is_choice(answer, problem.question)
        and JUSTIFIED.keys().isdisjoint([(problem.id, answer), (problem.answer, answer)])
    ]


def paid_constants(pool: VerifierPool, chosen: list[Problem]) -> list[tuple[str, str, str]]:
    rows = paid(pool, [(problem, answer) for problem in chosen for answer in CONSTANTS])
    return [row for row in rows if not is_own_value(row[2], row[1])]


def paid_of_other_numbers(pool: VerifierPool, chosen: list[Problem]) -> list[tuple[str, str, str]]:
    """Golds with an infinity, a name or the next number in the place of one, which is not the index of a constant and
    does not stand behind an exact value.
    """
    rows = []
    for problem in (one for one in chosen if r"\approx" not in one.answer):
        for found in re.finditer(r"(?<![\d_.])(?<!_\{)\d+(?![\d.])", problem.answer):
            start, end = problem.answer[: found.start()], problem.answer[found.end() :]
            rows += [(problem, start + other + end) for other in (r"\infty ", "x_0 ", str(int(found[0]) + 1))]
    return [row for row in paid(pool, rows) if not is_own_value(row[2], row[1])]


def sample(name: str, size: int) -> list[Problem]:
    """Problems at even distances, of those whose gold is more than an integer where there are so many."""
    every = problems(name)
    chosen = [problem for problem in every if not problem.answer.isdigit()]
    chosen = chosen if len(chosen) >= size else every
    return chosen[:: len(chosen) // size][:size]


@pytest.mark.parametrize("share", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_no_answer_is_paid_for_two_golds(pool: VerifierPool, share: int) -> None:
    answers = [(form.format(a=a, b=b), a, b) for n, form in enumerate(HEDGES) for a, b in PAIRS[n % share :: share]]
    results = pool.judge([(answer, gold) for answer, a, b in answers for gold in (a, b)])
    assert [row for row, *both in zip(answers, results[::2], results[1::2], strict=True) if all(both)] == []


@pytest.mark.parametrize("name", NAMES)
def test_constant_answers_earn_the_gold_alone(pool: VerifierPool, name: str) -> None:
    assert paid_constants(pool, sample(name, 4)) == []


@pytest.mark.parametrize("name", NAMES)
def test_answers_taken_from_the_question_earn_the_gold_alone(pool: VerifierPool, name: str) -> None:
    rows = [(problem, answer) for problem in sample(name, 6) for answer in of_the_question(problem.question)]
    assert paid(pool, rows) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_gold_with_another_number_in_it_earns_nothing(pool: VerifierPool, name: str) -> None:
    assert paid_of_other_numbers(pool, sample(name, 10)) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_gold_that_its_question_names_is_no_question_said_back(name: str) -> None:
    """Choices, named expressions, "which of these": the gold is a formula of its question, in its own form."""
    for problem in problems(name):
        gold = problem.answer.strip("$")
        if "=" not in gold and gold in formulas_in(problem.question):
            for answer in (f"x = {gold}", f"The answer is ${gold.replace('frac', 'dfrac')}$."):
                assert verdict(answer, problem.answer, question_of(problem)) in (Verdict.CORRECT, None), (
                    problem.id,
                    answer,
                )


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", NAMES)
def test_no_fixed_policy_earns_more_than_the_gold_on_any_problem(pool: VerifierPool, name: str) -> None:
    chosen = problems(name)
    answers = [(problem, answer) for problem in chosen for answer in of_the_question(problem.question)]
    assert [*paid_constants(pool, chosen), *paid(pool, answers), *paid_of_other_numbers(pool, chosen)] == []
