"""What a question says about its answer: choices, the unit, the order of a list, a tolerance of its data set.

`grade(prediction, gold, question)` uses it before the ladder of verifier "maths"; without a question nothing changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache

from data.problem import Problem
from verifiers import maths
from verifiers.answer_text import formulas_in
from verifiers.answers.equality import equal
from verifiers.answers.evaluation import approximation
from verifiers.answers.forms import (
    Form,
    form,
    has_open_part,
    has_part,
    is_expanded,
    is_inside,
    is_quotient,
    num_factors,
    numbers_in,
    worked_out,
)
from verifiers.answers.layer import letter_of, read, read_with_units, split_letter, wording, words_of
from verifiers.answers.rationals import NoValueError, TooLargeError
from verifiers.answers.scalars import comparable, equal_amounts, is_undone_for
from verifiers.answers.syntax import UnreadableError
from verifiers.answers.tokens import tokenize
from verifiers.answers.units import UNITS, unit
from verifiers.answers.values import Amount, Choice, Collection, Expression, Named, Reals, Value, all_equal, names
from verifiers.answers.words import in_words
from verifiers.normalise import canonical, visible
from verifiers.score import Judgement, Verdict

_LABEL = re.compile(r"\\(?:textbf|text|mathrm|mathbf|bf|rm)\s*\{\s*\(?([A-J])\)?\s*[.:]?\s*\}")
_MARK = re.compile(r"\(([A-J])\)|(?:^|\n)\s*([A-J])[.):]\s")
_SPACE = re.compile(r"\\(?:qquad|quad|hspace\{[^{}]*\}|newline|\\)|\\ |~")
_UNIT = re.compile(r"\b(?:how many|number of|in|in terms of) ((?:[a-z]+[ /-]?){1,5})(?=[\s.?,;:$]|$)", re.IGNORECASE)
_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("interval", re.compile(r"interval notation|as an interval|as intervals", re.IGNORECASE)),
    ("pair", re.compile(r"ordered (?:pair|triple)|coordinates of|as a point", re.IGNORECASE)),
    ("order", re.compile(r"in (?:increasing|decreasing|ascending|descending|this|that)? ?order\b", re.IGNORECASE)),
    ("expanded", re.compile(r"\bexpand\b", re.IGNORECASE)),
    ("factored", re.compile(r"\bfactor(?:ise|ize)?\b", re.IGNORECASE)),
)
_TOLERANCES = ("tolerance", "error")  # columns of data sets that hold a tolerance: OlympiadBench has "error"
_EQUALS = re.compile(r"(?:=|≈|\\(?:approx|sim(?:eq)?)(?![a-z]))(?![^{}]*\})")  # not the = of \sum_{k=1}
_NO_UNITS = frozenset(("a", "an", "of", "in", "has", "as"))  # "in a week", "how many minutes in all", "hours has she"
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?|[a-z]+", re.IGNORECASE)
_OTHER = "the letter of another choice"
_BARE = ("list", "set")  # values without an order
_MAX_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class Question:
    """What is known about the answer to a question. All empty: nothing, and answers are graded as without it."""

    choices: tuple[tuple[str, str], ...] = ()  # (letter, text)
    unit: str = ""  # in words: "square meters"
    form: str = ""  # of _FORMS
    tolerance: str = ""  # "0.01" is absolute, "1%" a share of the gold; "0.1, 0.01" for a list of two; "" is exact
    formulas: tuple[str, ...] = ()  # in LaTeX, which said back are no answer
    numbers: tuple[str, ...] = ()  # of the text, "84" and "two", whose quotient is none

    def __bool__(self) -> bool:
        return self != Question()


def question_of(problem: Problem) -> Question:
    """What a problem's question, and its columns "tolerance" or "error", say about the answer.

    A tolerance is "0.01" or "1%"; for a gold that is a list also one for each of its values, as a list or "0.1, 0.01".
    """
    question = read_question(problem.question)
    tolerance = _tolerance(problem.columns)
    return replace(question, tolerance=tolerance) if tolerance else question


def _tolerance(columns: Mapping[str, object]) -> str:
    """The first tolerance that the columns hold; "" for none, and for what is no tolerance."""
    for name in _TOLERANCES:
        value = columns.get(name)
        texts = [str(each).strip() for each in (value if isinstance(value, list | tuple) else str(value).split(","))]
        try:
            sizes = [Fraction(text.removesuffix("%")) for text in texts]
        except (ValueError, ZeroDivisionError):
            continue
        if sizes and min(sizes) >= 0 < max(sizes):
            return ", ".join(texts)
    return ""


def encode(question: Question) -> str:
    """The question as a text for a worker; "" where nothing is known."""
    return json.dumps(asdict(question)) if question else ""


def decode(text: str) -> Question:
    if not text:
        return Question()
    fields = json.loads(text)
    lists = {name: tuple(fields[name]) for name in ("formulas", "numbers")}
    return Question(**{**fields, **lists, "choices": tuple(map(tuple, fields["choices"]))})


@lru_cache(maxsize=4096)
def read_question(text: str) -> Question:
    """What the text of a question says about its answer."""
    if len(text) > _MAX_CHARACTERS:
        return Question()
    choices = _choices(text := visible(text))
    form = next((name for name, pattern in _FORMS if pattern.search(text)), "")
    if choices:
        return Question(choices, form=form)
    unit = _unit_in(text)
    numbers = tuple(word for word in _NUMBER.findall(text) if word[0].isdigit() or in_words(word))
    formulas = (*formulas_in(text), *(_amounts_in(text) if unit else ()))
    return Question((), unit, form, formulas=formulas, numbers=numbers)


def _choices(text: str) -> tuple[tuple[str, str], ...]:
    """The last run of choices A, B, ... in a question: at least three, or two where they end the text."""
    text = _SPACE.sub(" ", _LABEL.sub(r"(\1)", text))
    marks = [(match[1] or match[2], match) for match in _MARK.finditer(text)]
    starts = [place for place, (letter, _) in enumerate(marks) if letter == "A"]
    for start in reversed(starts):
        run = [match for place, (letter, match) in enumerate(marks[start:]) if letter == "ABCDEFGHIJ"[place % 10]]
        run = run[: next((k for k, m in enumerate(run) if marks[start + k][1] is not m), len(run))]
        if len(run) >= 2:
            ends = [match.start() for match in run[1:]] + [len(text)]
            texts = [text[match.end() : end].strip(" \n\t$,;.") for match, end in zip(run, ends, strict=True)]
            return tuple(zip("ABCDEFGHIJ", texts, strict=False))
    return ()


def _unit_in(text: str) -> str:
    """The unit of "how many minutes" or "in square meters": the last that is named; "" for none."""
    for match in reversed(list(_UNIT.finditer(text))):
        words = match[1].strip().split()
        for size in range(len(words), 0, -1):
            phrase = " ".join(words[:size])
            if _NO_UNITS.isdisjoint((words[0], words[size - 1])) and _known_unit(phrase) is not None:
                return phrase
    return ""


def _amounts_in(text: str) -> list[str]:
    """The amounts of a text, "6 feet" and "two hours", each as long as it is read."""
    words, amounts = [word.strip(".,;:?!()") for word in text.split()], []
    for place in (place for place, word in enumerate(words) if _known_unit(word) is not None):
        phrases = (" ".join(words[start : place + 1]) for start in range(max(place - 4, 0), place))
        amounts += [phrase for phrase in phrases if isinstance(read(phrase), Amount)][:1]
    return amounts


def _known_unit(phrase: str) -> tuple[tuple[tuple[str, int], ...], Fraction] | None:
    try:
        value = unit(tokenize(rf"\text{{{phrase}}}"))
    except UnreadableError:
        return None
    return (value.powers, value.factor) if value is not None and value != UNITS["unit"] and value.powers else None


# -------------------------------------------------------------------------------------------------- grading


def equivalent(gold: str, answer: str, question: Question) -> Judgement:
    """Judge an answer by what the question says, and by verifier "maths" where that decides nothing."""
    judgement = maths.equivalent(gold, answer)
    if judgement.verdict is Verdict.REFUSED:
        return judgement
    finding = _by_question(gold, answer, question)
    is_correct, layer = finding or (bool(judgement), judgement.layer)
    is_own_form = layer in ("identical", "tolerance", "choice")
    if is_correct and not is_own_form and _is_said_back(gold, answer, question):
        finding = False, "undone"
    if finding is None:
        return judgement
    verdict = Verdict.CORRECT if finding[0] else Verdict.WRONG
    return Judgement(verdict, finding[1], judgement.gold_form, judgement.answer_form)


def _is_said_back(gold: str, answer: str, question: Question) -> bool:
    r"""Whether an answer leaves work of its question undone that the gold has done.

    It is a formula of the question, or holds one as an item, that the gold has in another form; or it has one in it
    that is equal to the gold, `\frac{F+F}{2}`; or it is a quotient of numbers of the question where the gold is a
    whole number; or a logarithm, trigonometric value or the like where the question has some and the gold, a number,
    has none.
    """
    gold, answer = maths.answer_part(gold), maths.answer_part(answer)
    question_forms, expected = _forms_in(question.formulas), _forms_in((gold,))
    last = _EQUALS.split(answer)[-1]
    value = _forms_of(last)
    stated = _forms_of(answer) | value
    written = stated, question_forms, expected
    for said, asked, known in (written, ({*map(worked_out, each)} for each in written)):  # (2+1)x is 3x said back
        if said & asked - known:
            return True
    for text in _sides_of(question.formulas):
        parts = list(filter(_is_compound, _forms_of(text)))
        is_there = canonical(text) in canonical(last) or _is_in_one(parts, value)
        if parts and is_there and not _is_in_one(parts, expected) and _is(gold, text):
            return True
    is_whole = any(each[0] == "number" and each[1].denominator == 1 for each in expected)
    if is_whole and (quotients := list(filter(is_quotient, stated - expected))):
        question_numbers = set().union(*map(numbers_in, question_forms | _forms_in(question.numbers)))
        if any(numbers_in(each) <= question_numbers for each in quotients):
            return True
    is_number = not any(has_part(each, "symbol") for each in expected)
    return (
        is_number
        and not any(map(has_open_part, expected))
        and any(map(has_open_part, stated))
        and any(map(has_open_part, question_forms))
    )


@lru_cache(maxsize=256)
def _forms_in(formulas: tuple[str, ...]) -> frozenset[Form]:
    """What formulas and the sides of their equations are, in any order of their terms."""
    return frozenset(each for text in _sides_of(formulas) for each in _forms_of(text))


def _sides_of(formulas: tuple[str, ...]) -> list[str]:
    return [text for formula in formulas for text in (formula, *formula.split("="))]


def _is_compound(part: Form) -> bool:
    return any(isinstance(each, tuple) for each in part)


def _is_in_one(parts: Iterable[Form], wholes: Iterable[Form]) -> bool:
    return any(is_inside(part, whole) for whole in wholes for part in parts)


def _forms_of(text: str) -> set[Form]:
    """The form of a text and, of a list, those of its items; the spelling of a text whose value has no form."""
    value = read(text.lstrip(" ,;:").rstrip(" .,;:?"))
    forms = () if value is None else map(form, (value, *value.items) if isinstance(value, Collection) else (value,))
    return {*filter(None, forms)} or {("text", canonical(text))}


def _by_question(gold: str, answer: str, question: Question) -> tuple[bool, str] | None:
    sides = [read(maths.answer_part(text)) for text in (gold, answer)]
    if question.choices and (result := _by_choices(gold, answer, sides[0], sides[1], question)) is not None:
        return result, "choice"
    if sides[0] is None or sides[1] is None:
        return None
    if question.unit:
        sides[1] = read_with_units(maths.answer_part(answer), sides[1])
    try:
        return _by_kind(sides[0], sides[1], question)
    except (UnreadableError, NoValueError, TooLargeError, OverflowError):
        return None


def _by_choices(
    gold: str, answer: str, gold_value: Value | None, answer_value: Value | None, question: Question
) -> bool | None:
    """A letter for the text of its choice, and the text of a choice for its letter."""
    texts = dict(question.choices)
    letters = [
        _letter(each) or _letter_of_words(text, texts) for each, text in ((gold_value, gold), (answer_value, answer))
    ]
    if isinstance(answer_value, Choice) and isinstance(gold_value, Choice):
        return None
    if isinstance(answer_value, Choice) and letters[1] in texts:  # a letter with another value
        value = read(texts[letters[1]])
        return False if value is not None and equal(value, answer_value.value) is False else None
    if letters[1] == _OTHER:
        return False
    if letters[0] in texts and not letters[1]:
        return True if _is(texts[letters[0]], answer) else None
    if letters[1] in texts and not letters[0] and not isinstance(answer_value, Choice):
        return _is(texts[letters[1]], gold) and _is(gold, texts[letters[1]])
    return None


def _letter_of_words(text: str, texts: Mapping[str, str]) -> str:
    """The letter of a choice beside its own words, "(B) blue"; _OTHER beside those of another one, "" for none."""
    letter, rest = split_letter(words_of(maths.answer_part(text)))
    choices = [each for each, words in texts.items() if wording(words_of(words)) == wording(rest) != ()]
    return letter if letter in choices else _OTHER if letter and choices else ""


def _letter(value: Value | None) -> str:
    if isinstance(value, Choice):
        return value.letter
    return letter_of(value)


def _is(gold: str, answer: str) -> bool:
    return maths.equivalent(gold, answer).verdict is Verdict.CORRECT


def _by_kind(gold: Value, answer: Value, question: Question) -> tuple[bool, str] | None:
    """The question's unit, tolerance and form."""
    if question.tolerance and (is_near := _is_near_each(gold, answer, question)) is not None:
        return is_near, "tolerance"
    if question.unit and isinstance(answer, Amount) and isinstance(gold, Expression) and not names(gold.node):
        powers, factor = _known_unit(question.unit) or ((), Fraction(1))
        result = equal_amounts(Amount(gold.node, powers, factor), answer)
        return None if result is None else (result, "unit")
    if question.form == "pair" and isinstance(gold, Collection) and isinstance(answer, Reals):
        return False, "structure"
    if question.form == "interval" and isinstance(gold, Collection) and gold.kind == "tuple" and len(gold.items) == 2:
        return (False, "set") if isinstance(answer, Named) and len(answer.names) > 1 else None
    if isinstance(gold, Expression) and isinstance(answer, Expression):
        is_open = question.form == "expanded" and is_expanded(gold.node) and not is_expanded(answer.node)
        is_open = is_open or (question.form == "factored" and num_factors(answer.node) < num_factors(gold.node))
        return (False, "undone") if is_open else None
    is_list = isinstance(gold, Collection) and isinstance(answer, Collection) and gold.kind == answer.kind == "list"
    if question.form == "order" and is_list and isinstance(gold, Collection) and isinstance(answer, Collection):
        if len(gold.items) != len(answer.items):
            return None
        result = all_equal(map(equal, gold.items, answer.items))
        return None if result is None else (result, "structure")
    return None


def _is_number(value: Value) -> bool:
    node = value.node if isinstance(value, Expression | Amount) else None
    return node is not None and not names(node)


def _is_near_each(gold: Value, answer: Value, question: Question) -> bool | None:
    """Whether a number, or each number of a list, lies within its tolerance; None for other values.

    One tolerance counts for all numbers, several for one each, in the gold's order. The answer's list may be in another
    order, unless the question asks for one or the values are the components of a tuple.
    """
    golds, answers = _numbers(gold), _numbers(answer)
    sizes = question.tolerance.split(", ")
    sizes = sizes * len(golds) if len(sizes) == 1 else sizes
    is_bare = isinstance(gold, Collection) and gold.kind in _BARE
    same_kind = isinstance(answer, Collection) and answer.kind in _BARE if is_bare else _form(gold) == _form(answer)
    if not golds or not answers or not same_kind or len(sizes) != len(golds):
        return None
    if any(is_undone_for(*pair) for pair in zip(golds, answers, strict=False)):
        return None
    if len(golds) != len(answers):
        return False
    near = [[_is_near(each, other, size) for other in answers] for each, size in zip(golds, sizes, strict=True)]
    if question.form == "order" or not is_bare:
        return all(row[place] for place, row in enumerate(near))
    return _can_be_paired(near)


def _numbers(value: Value) -> list[Value]:
    """The number, or the numbers of a list, set or tuple; empty if one of its parts is no number."""
    parts: list[Value] = list(value.items) if isinstance(value, Collection) else [value]
    return parts if all(map(_is_number, parts)) else []


def _form(value: Value) -> tuple[str, str]:
    return (value.kind, value.brackets) if isinstance(value, Collection) else ("", "")


def _can_be_paired(near: list[list[bool]]) -> bool:
    """Whether each row can have a column of its own in which it is true (augmenting paths)."""
    row_of: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for column in (column for column, is_near in enumerate(near[row]) if is_near and column not in tried):
            tried.add(column)
            if column not in row_of or place(row_of[column], tried):
                row_of[column] = row
                return True
        return False

    return all(place(row, set()) for row in range(len(near)))


def _is_near(gold: Value, answer: Value, tolerance: str) -> bool:
    """Whether a number lies within a tolerance of the gold, absolute or in per cent of it; its unit is converted."""
    assert isinstance(gold, Expression | Amount) and isinstance(answer, Expression | Amount)
    if isinstance(gold, Amount) and isinstance(answer, Amount) and gold.powers != answer.powers:
        return False
    if type(gold) is not type(answer) and {gold.node.op, answer.node.op} & {"percent", "degrees"}:  # 5 cm and 5%
        return False
    scale = answer.factor / gold.factor if isinstance(gold, Amount) and isinstance(answer, Amount) else Fraction(1)
    near = []
    for one, other in comparable(gold.node, answer.node):
        value = approximation(one)
        size = float(Fraction(tolerance.removesuffix("%"))) * (abs(value) / 100 if tolerance.endswith("%") else 1)
        near.append(abs(approximation(other) * float(scale) - value) <= size * (1 + 1e-12))
    return any(near)
