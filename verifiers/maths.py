"""Rule "maths": is an answer the same mathematical object as the gold?

Layers run cheapest first; the first that can decide does. Most answers never reach the symbolic layer. Correct are
values that are equal in any exact form; formatting, units, the name of a variable before `=` and the case of words do
not matter. A rounded value, an unfinished calculation, a hedge, an extra or a missing solution are wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

from data.answer_key import last_box
from verifiers import prose, structure
from verifiers.answers.layer import compare as compare_values
from verifiers.limits import too_big, too_costly
from verifiers.normalise import canonical, key
from verifiers.number_words import in_words
from verifiers.numbers import equal as equal_numerals
from verifiers.numbers import numeral, without_unit
from verifiers.score import Judgement, Verdict
from verifiers.symbolic import compare

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)  # monotonic; None: algebra allowed


class UndecidedError(Exception):
    """The decision would need algebra or more time. Raised inside `without_algebra` only."""


@contextmanager
def without_algebra(seconds: float) -> Iterator[None]:
    """Context in which an answer that needs the last layer, or more than `seconds`, raises UndecidedError.

    It applies to the current thread or asyncio task only.
    """
    token = _deadline.set(monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


Finding = tuple[Verdict, str]  # the verdict and the layer that gave it
_MAX_NESTING = 4  # of lists in lists


def equivalent(gold: str, answer: str) -> Judgement:
    """Judge whether `answer` is equivalent to `gold`. Not symmetric: the gold decides which form is required."""
    if reason := too_big(answer):
        return Judgement(Verdict.REFUSED, reason)
    whole = whole_answer(gold), whole_answer(answer)
    gold_text, answer_text = answer_part(gold, whole[0]), answer_part(answer, whole[1])
    gold, answer = canonical(gold_text), canonical(answer_text)
    if not answer:
        return Judgement(Verdict.NO_ANSWER, "empty", gold, answer)
    verdict, layer = (
        _cheap(gold, answer) or (_first_correct(whole, (gold_text, answer_text))) or _decide(gold, answer, 0)
    )
    return Judgement(verdict, layer, gold, answer)


def same(left: str, right: str) -> bool:
    """Whether two predictions count as one answer in a vote: each is equivalent to the other as gold."""
    return all(equivalent(*pair).verdict is Verdict.CORRECT for pair in ((left, right), (right, left)))


def whole_answer(text: str) -> str:
    """The content of the last box; without a box, the text."""
    box = last_box(text)
    return text if box is None else box


def answer_part(text: str, whole: str | None = None) -> str:
    """The content of the last box; without a box, the formula of a sentence. `whole`: whole_answer(text), if known."""
    whole = whole_answer(text) if whole is None else whole
    return prose.formula(text) if whole is text else whole


def _first_correct(*readings: tuple[str, str]) -> Finding | None:
    """The grammar's finding for the whole texts; where that is not "correct", for the formulas in them."""
    findings = [_typed(*pair) for pair in dict.fromkeys(readings)]
    return next((each for each in findings if each and each[0] is Verdict.CORRECT), findings[-1] or findings[0])


_LETTER = re.compile(r"[^\W\d_]")


def _check_deadline() -> None:
    deadline = _deadline.get()
    if deadline is not None and monotonic() > deadline:
        raise UndecidedError


def _cheap(gold: str, answer: str) -> Finding | None:
    """Layers "identical" and "rational", which decide most answers."""
    if gold == answer:
        return Verdict.CORRECT, "identical"
    _check_deadline()
    return None if _LETTER.search(answer) else _rational(gold, answer, 0)


def _typed(gold: str, answer: str) -> Finding | None:
    """Layers of the grammar: both texts as typed values (verifiers.answers), read as written.

    Two numbers with units and words around them are left to layer "rational".
    """
    numerals = numeral(canonical(gold)), numeral(canonical(answer))
    if numerals[0] and numerals[1] and (numerals[0].unit == numerals[1].unit or not all(n.unit for n in numerals if n)):
        return None
    if (result := compare_values(gold, answer)) is None:
        return None
    is_equal, layer = result
    return _verdict(is_equal), layer


def _decide(gold: str, answer: str, depth: int) -> Finding:
    if gold == answer:
        return Verdict.CORRECT, "identical"
    _check_deadline()
    if not _LETTER.search(answer) and (finding := _rational(gold, answer, depth)) is not None:
        return finding  # most answers are numbers: no words to examine
    if key(gold) == key(answer):
        return Verdict.CORRECT, "identical"
    if prose.states(key(gold), key(answer)):
        return Verdict.CORRECT, "text"
    if prose.hedges(answer, gold):
        return Verdict.WRONG, "hedge"
    gold, answer = _right_sides(gold, prose.plain(answer))
    if key(gold) == key(answer):
        return Verdict.CORRECT, "identical"
    for layer in LAYERS:
        if (finding := layer(gold, answer, depth)) is not None:
            return finding
    raise AssertionError("the last layer always decides")


def _right_sides(gold: str, answer: str) -> tuple[str, str]:
    """Drop a name or a calculation before `=` from both texts, unless the gold is an equation."""
    gold_name, gold_value = _last_equation(gold)
    answer_name, answer_value = _last_equation(answer)
    if r"\begin" in gold + answer or structure.shape(gold) or structure.shape(answer):
        return gold, answer
    if not gold_name and answer_name:  # "5 = x" says 5, but "A = C" is C
        is_mirrored = re.fullmatch(r"[a-zA-Z]", answer_value) and not _is_variable(answer_name)
        return gold, answer_name if is_mirrored and "=" not in answer_name else answer_value
    if gold_name and ((_is_name(gold_name) and not answer_name) or key(gold_name) == key(answer_name)):
        return gold_value, answer_value
    return gold, answer


def _last_equation(text: str) -> tuple[str, str]:
    """The text before and after the last `=` outside brackets; "" before it if there is none."""
    *names, value = structure.split(text, "=")
    return "=".join(names), value


def _is_name(text: str) -> bool:
    r"""Whether a text only names a value: x, AB, f(x), x_{1}, \theta."""
    return bool(re.fullmatch(r"(?:[a-zA-Z]{1,3}|\\[a-z]+ ?|\\text\{[^{}]*\})(?:_\{\\?\w+\})?(?:\([a-z, ]*\))?", text))


def _is_variable(text: str) -> bool:
    return _is_name(text) and text.strip() not in ("e", "i", r"\pi", r"\infty")


def _rational(gold: str, answer: str, _depth: int) -> Finding | None:
    """Layer "rational": two plain numbers, compared exactly."""
    gold_numeral, answer_numeral = numeral(gold), numeral(answer)
    if gold_numeral is None or answer_numeral is None:
        return None
    return _verdict(equal_numerals(gold_numeral, answer_numeral)), "rational"


_NUMERAL_WITH_BASE = re.compile(r"([0-9A-Z]+(?:\.\d+)?)_\{(?:\\text\{)?(\w+)\}?\}")


def _base_numerals(gold: str, answer: str, _depth: int) -> Finding | None:
    """Layer "base": numerals with a base, digit by digit. The answer may leave the base out, but it must not differ."""
    gold_match, answer_match = _NUMERAL_WITH_BASE.fullmatch(gold), _NUMERAL_WITH_BASE.fullmatch(answer)
    if not gold_match and not answer_match:
        return None
    if gold_match and answer_match:
        return _verdict(gold_match[1] == answer_match[1] and _base(gold_match[2]) == _base(answer_match[2])), "base"
    return _verdict(gold_match is not None and gold_match[1] == answer), "base"


def _base(text: str) -> str:
    number = in_words(text)
    return text if number is None else str(number)


_CHOICE = re.compile(r"(?:(?:the )?(?:correct )?(?:answer|choice|option)(?: is)?:? ?)?\(?([A-Ja-j])\)?", re.IGNORECASE)


def _choice(gold: str, answer: str, _depth: int) -> Finding | None:
    """Layer "choice": the gold is a capital letter A to J; the same letter in any formatting is correct."""
    gold_letter = re.fullmatch(r"\(?([A-J])\)?", key(gold))
    answer_letter = _CHOICE.fullmatch(key(answer)) if gold_letter else None
    if gold_letter is None or answer_letter is None:
        return None
    return _verdict(gold_letter[1] == answer_letter[1].upper()), "choice"


_OPERATION = re.compile(r"\\(?:sum|int|prod|lim|min|max|gcd|lcm|det)(?![a-z])")
_OPERATOR = re.compile(r"(?<=[\d)}!.])\s?(?:[-+/]|\\cdot ?)\s?(?=[\d({.\\])")


def _calculation(gold: str, answer: str, _depth: int) -> Finding | None:
    """Layer "undone": the gold is a number and the answer is a calculation that is not carried out."""
    if numeral(gold) is None:
        return None
    has_letters = re.search(r"[a-zA-Z]", re.sub(r"\\(?:frac|sqrt|cdot|pi)(?![a-z])", "", without_unit(answer)[0]))
    if _OPERATION.search(answer) or (not has_letters and _OPERATOR.search(answer)):
        return Verdict.WRONG, "undone"
    return None


def _structure(gold: str, answer: str, depth: int) -> Finding | None:
    """Layer "structure": lists, sets, tuples, intervals, matrices and named values, compared part by part."""

    def same(gold_part: str, answer_part: str) -> bool:
        return _decide(gold_part, answer_part, depth + 1)[0] is Verdict.CORRECT

    shapes = [structure.shape(gold), structure.shape(answer)]
    gold_values, answer_values = structure.values_by_name(gold), structure.values_by_name(answer)
    if depth < _MAX_NESTING and gold_values is not None:
        return _verdict(structure.equal_by_name(gold_values, answer, same)), "structure"
    if depth < _MAX_NESTING and answer_values is not None and shapes[0] and shapes[0].order:
        return _verdict(structure.equal_to_tuple(shapes[0], answer_values, same)), "structure"
    single = [each.parts[0] if each and len(each.parts) == 1 else None for each in shapes]
    if single != [None, None] and depth < _MAX_NESTING:
        return _decide(single[0] or gold, single[1] or answer, depth + 1)
    gold_shape, answer_shape = shapes
    if gold_shape is None and answer_shape is None:
        return None
    if gold_shape is None or answer_shape is None or depth == _MAX_NESTING:
        return Verdict.WRONG, "structure"
    return _verdict(structure.equal(gold_shape, answer_shape, same)), "structure"


_FUNCTIONS = {
    "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "log", "ln", "lg",
    "exp", "min", "max", "gcd", "lcm", "mod", "det", "begin", "end", "pmatrix", "bmatrix", "matrix", "array",
}  # fmt: skip


def _textual(gold: str, answer: str, _depth: int) -> Finding | None:
    """Layer "text": words and single letters that differ are wrong; no algebra is tried on them."""
    for text in (gold, answer):
        if re.fullmatch(r"[A-Za-z]", key(text)):
            other = answer if text is gold else gold
            if re.fullmatch(r"[A-Za-z]", key(other)) or numeral(other):
                return Verdict.WRONG, "text"
        body = without_unit(text)[0]
        if any(len(word) > 2 and word.casefold() not in _FUNCTIONS for word in prose.words(body)):
            return Verdict.WRONG, "text"
    return None


def _symbolic(gold: str, answer: str, _depth: int) -> Finding:
    """Layers "unit", "numeric" and "math-verify": everything else, by algebra. Different units decide first."""
    (gold, gold_unit), (answer, answer_unit) = without_unit(gold), without_unit(answer)
    if gold_unit and answer_unit and gold_unit != answer_unit:
        return Verdict.WRONG, "unit"
    if reason := too_costly(answer):
        return Verdict.REFUSED, reason
    if too_costly(gold):
        return Verdict.WRONG, "text"
    if _deadline.get() is not None:
        raise UndecidedError
    return compare(gold, answer)


def _verdict(is_equal: bool) -> Verdict:
    return Verdict.CORRECT if is_equal else Verdict.WRONG


LAYERS: tuple[Callable[[str, str, int], Finding | None], ...] = (
    _rational,
    _choice,
    _base_numerals,
    _structure,
    _calculation,
    _textual,
    _symbolic,
)
