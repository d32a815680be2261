"""Whether a typed answer is the same as a typed gold, type by type. The gold decides which form an answer must have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Items

from verifiers.answers.comparison import equal_expressions, proportional
from verifiers.answers.families import equal_families
from verifiers.answers.rationals import NoValueError, TooLargeError, rational
from verifiers.answers.reals import as_reals, equal_reals
from verifiers.answers.scalars import equal_scalars, is_closed
from verifiers.answers.token import UnreadableError
from verifiers.answers.tree import Node, divide, has, multiply, names, replace_symbols, signs, subtract, symbol
from verifiers.answers.values import (
    Assignments,
    Choice,
    Clock,
    Date,
    Expression,
    Family,
    Function,
    Matrix,
    Nothing,
    Numeral,
    Parameter,
    Piecewise,
    Ratio,
    Reals,
    Relation,
    Sequence,
    Value,
)

Result = bool | None
_INTEGER_LETTERS = frozenset("knmlj")
_FUNCTIONS = ("sin", "cos", "tan", "cot", "sec", "csc", "ln", "log", "unknownlog", "binomial", "factorial", "absolute")
_MIRROR = {">": "<", "≥": "≤"}


def equal(gold: Value, answer: Value) -> Result:
    """True or False where it is decided; None where another layer must decide."""
    try:
        if isinstance(gold, Choice) or isinstance(answer, Choice):
            return equal_choices(gold, answer)
        if isinstance(gold, Numeral | Clock | Date) or isinstance(answer, Numeral | Clock | Date):
            return _quantities(gold, answer)
        return _equal(_plain(gold), _plain(answer))
    except (UnreadableError, NoValueError, TooLargeError, RecursionError):
        return None


def _quantities(gold: Value, answer: Value) -> Result:
    """Times and dates are the same in every part; a numeral with a base may leave its base out."""
    if isinstance(gold, Numeral) and isinstance(answer, Expression):
        value = rational(answer.node)
        return None if value is None else str(value) == gold.digits
    return gold == answer if type(gold) is type(answer) else None


def equal_choices(gold: Value, answer: Value) -> Result:
    """A choice with its value is either of them; where both sides have both, both count."""
    if isinstance(gold, Choice) and isinstance(answer, Choice):
        return gold.letter == answer.letter and equal(gold.value, answer.value)
    if isinstance(gold, Choice):
        letter = letter_of(answer)
        return letter == gold.letter if letter else equal(gold.value, answer)
    assert isinstance(answer, Choice)
    letter = letter_of(gold)
    return letter == answer.letter if letter else equal(gold, answer.value)


def letter_of(value: Value) -> str:
    """The letter of a value that is only a capital letter; "" for another."""
    if not isinstance(value, Expression) or value.node.op != "symbol":
        return ""
    return value.node.name if value.node.name in tuple("ABCDEFGHJ") else ""


def _plain(value: Value) -> Value:
    """A value without brackets that do not matter: a set or a list of one value is that value."""
    if (
        isinstance(value, Sequence)
        and value.kind in ("list", "set")
        and len(value.items) == 1
        and value.items[0] != Nothing()
    ):
        return _plain(value.items[0])
    if (
        isinstance(value, Relation)
        and value.signs == ("=",)
        and value.sides[1].op == "symbol"
        and not names(value.sides[0])
    ):
        return Assignments((value.sides[1].name,), (Expression(value.sides[0]),))
    if isinstance(value, Assignments) and len(value.names) == 1:
        item = _plain(value.items[0])
        letter, _, index = value.names[0].partition("_")
        if len(index) == 1 and index.isalpha() and isinstance(item, Expression) and names(item.node) == {index}:
            return Function(letter, index, item.node)  # a_n = 2n + 1
        return Assignments(value.names, (item,))
    return value


def _equal(gold: Value, answer: Value) -> Result:
    if isinstance(gold, Relation) and gold.signs == ("=",) and isinstance(answer, Assignments):
        return _equal_relations(gold, answer)
    if (
        isinstance(gold, Assignments)
        and isinstance(answer, Assignments)
        and len(gold.names) > 1
        and len(answer.names) == 1
    ):
        return False
    gold, answer, is_same_name = _without_names(gold, answer)
    if not is_same_name:
        return False
    if isinstance(gold, Relation) or isinstance(answer, Relation):
        return _equal_relations(gold, answer)
    gold, answer = _as_families(gold, answer)
    for kind, function in _BY_TYPE:
        if isinstance(gold, kind) or isinstance(answer, kind):
            return function(gold, answer)
    return equal_scalars(gold, answer) if isinstance(gold, Expression) and isinstance(answer, Expression) else None


# -------------------------------------------------------------------------------------------------- names


def _without_names(gold: Value, answer: Value) -> tuple[Value, Value, bool]:
    """Both values without a single name in front, and whether the names allow them to be equal."""
    gold_name, gold = _name(gold)
    answer_name, answer = _name(answer)
    if isinstance(gold, Function) and "_" in answer_name:
        return gold, answer, False  # a_n = ... and a_{n+1} = ...
    if isinstance(gold, Function) or isinstance(answer, Function):
        gold, answer, is_same = _function_values(gold, answer)
        return gold, answer, is_same
    if gold_name and isinstance(answer, Relation) and isinstance(gold, Expression):
        return Relation(("=",), (symbol(gold_name), gold.node)), answer, True
    if gold_name and answer_name and gold_name != answer_name:
        if isinstance(gold, Expression) and isinstance(answer, Expression) and names(gold.node) | names(answer.node):
            sides = [Relation(("=",), (symbol(n), v.node)) for n, v in ((gold_name, gold), (answer_name, answer))]
            return sides[0], sides[1], True
        return gold, answer, False
    return gold, answer, True


def _name(value: Value) -> tuple[str, Value]:
    if isinstance(value, Assignments) and len(value.names) == 1:
        return value.names[0], value.items[0]
    return "", value


def _function_values(gold: Value, answer: Value) -> tuple[Value, Value, bool]:
    """The expressions of f(x) = ... and f(t) = ..., in one letter; an answer may leave f(x) out."""
    is_same = True
    if isinstance(gold, Function) and isinstance(answer, Function):
        is_same = gold.name == answer.name
        answer = Function(
            answer.name, gold.argument, replace_symbols(answer.node, {answer.argument: symbol(gold.argument)})
        )
    plain = [Expression(each.node) if isinstance(each, Function) else each for each in (gold, answer)]
    return plain[0], plain[1], is_same


def _named(gold: Value, answer: Value) -> Result:
    """Several named values: by name; without names in the gold's order, or in the answer's alphabetical order."""
    if isinstance(gold, Assignments) and isinstance(answer, Assignments):
        if set(gold.names) != set(answer.names):
            return False
        values = dict(zip(answer.names, answer.items, strict=True))
        return _all(equal(item, values[name]) for name, item in zip(gold.names, gold.items, strict=True))
    if isinstance(gold, Assignments):
        if not isinstance(answer, Sequence) or len(answer.items) != len(gold.items):
            return False if isinstance(answer, Expression | Sequence) else None
        is_ordered = answer.kind == "list" or (answer.kind in ("tuple", "interval") and answer.brackets in ("()", ""))
        return is_ordered and _all(map(equal, gold.items, answer.items))
    if isinstance(gold, Sequence) and gold.kind in ("tuple", "interval") and isinstance(answer, Assignments):
        pairs = sorted(zip(answer.names, answer.items, strict=True), key=lambda pair: pair[0])
        return len(pairs) == len(gold.items) and _all(
            equal(g, item) for g, (_, item) in zip(gold.items, pairs, strict=True)
        )
    if isinstance(gold, Sequence) and gold.kind == "list" and isinstance(answer, Assignments):
        return _equal_unordered(gold.items, answer.items)
    return False if isinstance(gold, Expression) else None


# ------------------------------------------------------------------------------------- sets of reals, nothing


def _reals(gold: Value, answer: Value) -> Result:
    sides = [as_reals(each) for each in (gold, answer)]
    if sides[0] is None or sides[1] is None:
        other = gold if sides[0] is None else answer
        return False if isinstance(other, Expression) and is_closed(other.node) else None
    letters = {each.name for each in sides if each is not None and each.name}
    return len(letters) < 2 and equal_reals(sides[0], sides[1])


def _nothing(gold: Value, answer: Value) -> Result:
    if isinstance(gold, Nothing) and isinstance(answer, Nothing):
        return True
    other = answer if isinstance(gold, Nothing) else gold
    reals = as_reals(other)
    return not reals.intervals if reals is not None else False


# ------------------------------------------------------------------------------------------------ structures


def _matrices(gold: Value, answer: Value) -> Result:
    """Matrices entry by entry; a row or a column is the same as the vector in brackets."""
    if isinstance(gold, Matrix) and isinstance(answer, Matrix):
        if [len(row) for row in gold.rows] != [len(row) for row in answer.rows]:
            return False
        return _all(
            equal(*pair) for rows in zip(gold.rows, answer.rows, strict=True) for pair in zip(*rows, strict=True)
        )
    if isinstance(gold, Matrix) and isinstance(answer, Sequence) and (rows := _rows(answer)) is not None:
        return _matrices(gold, rows)
    entries = [_vector(each) for each in (gold, answer)]
    if entries[0] is None or entries[1] is None:
        return False if isinstance(gold, Expression) or isinstance(answer, Expression) else None
    return len(entries[0]) == len(entries[1]) and _all(map(equal, entries[0], entries[1]))


def _rows(value: Sequence) -> Matrix | None:
    """[[1, 2], [3, 4]] as a matrix."""
    rows = [item.items for item in value.items if isinstance(item, Sequence) and item.kind in ("tuple", "interval")]
    return Matrix(tuple(rows)) if len(rows) == len(value.items) and "set" not in value.kind else None


def _vector(value: Value) -> tuple[Value, ...] | None:
    if isinstance(value, Matrix) and len(value.rows) == 1:
        return value.rows[0]
    if isinstance(value, Matrix) and all(len(row) == 1 for row in value.rows):
        return tuple(row[0] for row in value.rows)
    is_vector = (
        isinstance(value, Sequence) and value.kind in ("tuple", "interval") and value.brackets in ("()", "[]", "")
    )
    return value.items if isinstance(value, Sequence) and is_vector else None


def _sequences(gold: Value, answer: Value) -> Result:
    if not (isinstance(gold, Sequence) and isinstance(answer, Sequence)):
        other = answer if isinstance(gold, Sequence) else gold
        return False if isinstance(other, Expression) else None
    gold, answer = _open(gold), _open(answer)
    is_ordered = [each.kind in ("tuple", "interval") for each in (gold, answer)]
    if is_ordered[0] != is_ordered[1]:
        is_long = not is_ordered[0] and gold.kind == "list" and len(gold.items) > 2 and answer.kind == "tuple"
        return (
            is_long
            and not answer.brackets
            and len(gold.items) == len(answer.items)
            and _all(map(equal, gold.items, answer.items))
        )
    if is_ordered[0]:
        return _equal_tuples(gold, answer)
    return _equal_unordered(gold.items, answer.items)


def _equal_tuples(gold: Sequence, answer: Sequence) -> Result:
    if (gold.brackets, len(gold.items)) != (answer.brackets, len(answer.items)):
        return False
    return _all(map(equal, gold.items, answer.items))


def _has_both_signs(value: Sequence) -> bool:
    return value.kind in ("tuple", "interval") and any(
        isinstance(item, Expression) and len(signs(item.node)) > 1 for item in value.items
    )


def _open(value: Sequence) -> Sequence:
    r"""A tuple with `\pm` in it as the list of the tuples that it stands for."""
    return Sequence("list", tuple(_expand(value))) if _has_both_signs(value) else value


def _expand(value: Sequence) -> list[Value]:
    r"""The tuples of all signs of a tuple with `\pm` in it."""
    nodes = [item.node for item in value.items if isinstance(item, Expression)]
    if len(nodes) != len(value.items):
        raise UnreadableError("both signs beside other values")
    return [
        Sequence(value.kind, tuple(map(Expression, node.args)), value.brackets)
        for node in signs(Node("tuple", tuple(nodes)))
    ]


def _equal_unordered(gold: Items[Value], answer: Items[Value]) -> Result:
    """Whether two lists hold the same values, in any order; repeated values count only where all are the same."""
    gold, answer = _flat(gold), _flat(answer)
    if len(gold) != len(answer):
        gold, answer = _distinct(gold), _distinct(answer)
        if len(gold) != len(answer) or len(gold) < 2:
            return False
    rest = list(answer)
    is_decided = True
    for value in gold:
        results = [equal(value, other) for other in rest]
        if True in results:
            del rest[results.index(True)]
        elif None in results:
            is_decided = False
        else:
            return False
    return True if is_decided else None


def _flat(values: Items[Value]) -> list[Value]:
    r"""The values with lists in the list (from `\pm`) and tuples of both signs taken apart."""
    result: list[Value] = []
    for value in values:
        if isinstance(value, Sequence) and value.kind == "list":
            result += _flat(value.items)
        elif isinstance(value, Sequence) and _has_both_signs(value):
            result += _expand(value)
        else:
            result.append(value)
    return result


def _distinct(values: list[Value]) -> list[Value]:
    result: list[Value] = []
    for value in values:
        if not any(equal(value, other) for other in result):
            result.append(value)
    return result


def _all(results: Iterable[Result]) -> Result:
    """True if all are, False if one is False, else None."""
    is_decided = True
    for result in results:
        if result is False:
            return False
        is_decided = is_decided and result is not None
    return True if is_decided else None


# ------------------------------------------------------------------------------------ families and ratios


def _as_families(gold: Value, answer: Value) -> tuple[Value, Value]:
    """Expressions with an integer letter beside a family, or with multiples of pi on both sides, as families."""
    sides = (gold, answer)
    if not any(isinstance(each, Family) for each in sides):
        is_open = all(_has_multiples_of_pi(each) for each in sides)
        return (_family(gold) or gold, _family(answer) or answer) if is_open else sides
    return _family(gold) or gold, _family(answer) or answer


def _has_multiples_of_pi(value: Value) -> bool:
    items = value.items if isinstance(value, Sequence) and value.kind in ("list", "set") else (value,)
    return all(
        isinstance(item, Expression)
        and has(item.node, "pi", "degrees")
        and has(item.node, "add", "plusminus")
        and len(names(item.node)) == 1
        and names(item.node) <= _INTEGER_LETTERS
        for item in items
    )


def _family(value: Value) -> Family | None:
    if isinstance(value, Family):
        return value
    items = value.items if isinstance(value, Sequence) and value.kind in ("list", "set") else (value,)
    nodes = [node for item in items if isinstance(item, Expression) for node in signs(item.node)]
    letters = frozenset().union(*map(names, nodes))
    if (
        not letters
        or not letters <= _INTEGER_LETTERS
        or not all(isinstance(item, Expression) and names(item.node) for item in items)
    ):
        return None
    return Family(tuple((node,) for node in nodes), tuple(Parameter(name) for name in sorted(letters)))


def _families(gold: Value, answer: Value) -> Result:
    if isinstance(gold, Family) and isinstance(answer, Family):
        return equal_families(_expanded(gold), _expanded(answer))
    other = answer if isinstance(gold, Family) else gold
    return False if isinstance(other, Expression | Sequence | Nothing) else None


def _expanded(family: Family) -> Family:
    items = tuple(tuple(node.args) for item in family.items for node in signs(Node("tuple", item)))
    return Family(items, family.parameters)


def _piecewise(gold: Value, answer: Value) -> Result:
    """Functions by cases: the same expressions under the same conditions, in any order."""
    if not (isinstance(gold, Piecewise) and isinstance(answer, Piecewise)) or len(gold.pieces) != len(answer.pieces):
        return None
    rest = list(answer.pieces)
    for value, condition in gold.pieces:
        match = next((each for each in rest if equal(condition, each[1]) is True), None)
        if match is None:
            return False
        result = equal(value, match[0])
        if result is not True:
            return result
        rest.remove(match)
    return True


def _ratios(gold: Value, answer: Value) -> Result:
    """Ratios up to a factor; a gold ratio of two takes their quotient. What may be a time of day must be the same."""
    if isinstance(gold, Ratio) and isinstance(answer, Ratio):
        if len(gold.terms) != len(answer.terms):
            return False
        if _all(map(equal_expressions, gold.terms, answer.terms)):
            return True
        if gold.is_time or answer.is_time:
            return False if gold.is_time and answer.is_time else None
        first = zip(gold.terms, answer.terms, strict=True)
        base = gold.terms[0], answer.terms[0]
        return _all(equal_expressions(multiply(g, base[1]), multiply(a, base[0])) for g, a in first)
    if isinstance(gold, Ratio) and isinstance(answer, Expression) and len(gold.terms) == 2 and not gold.is_time:
        return equal_scalars(Expression(divide(*gold.terms)), answer)
    return None


# ------------------------------------------------------------------------------------------------ relations


def _equal_relations(gold: Value, answer: Value) -> Result:
    """Relations up to a factor and up to the side on which they are read; an answer's value behind `=`."""
    if (
        isinstance(gold, Relation)
        and isinstance(answer, Assignments)
        and len(answer.names) == 1
        and isinstance(answer.items[0], Expression)
    ):
        answer = Relation(("=",), (symbol(answer.names[0]), answer.items[0].node))
    if isinstance(gold, Relation) and isinstance(answer, Relation):
        return _equal_pair_of_relations(_rising(gold), _rising(answer))
    if isinstance(answer, Relation) and answer.signs == ("=",) and isinstance(gold, Expression):
        left, right = answer.sides
        if not names(left) and equal_expressions(left, right) is not True:
            return False
        if names(right):
            return None
        is_asked = len(names(left)) != 1 or has(left, *_FUNCTIONS)  # a + b = 12, but not x^2 = 12 or x + 2 = 5
        return equal_scalars(gold, Expression(right)) if is_asked else False
    if isinstance(gold, Relation) and isinstance(answer, Expression) and is_closed(answer.node):
        return False
    return None


def _rising(relation: Relation) -> Relation:
    if set(relation.signs) <= {">", "≥"}:
        return Relation(tuple(_MIRROR[each] for each in reversed(relation.signs)), tuple(reversed(relation.sides)))
    return relation


def _equal_pair_of_relations(gold: Relation, answer: Relation) -> Result:
    if gold.signs != answer.signs:
        return False
    if len(gold.signs) == 1:
        differences = [subtract(*each.sides) for each in (gold, answer)]
        return proportional(differences[0], differences[1], has_sign=gold.signs[0] in "<≤")
    same = _all(map(equal_expressions, gold.sides, answer.sides))
    return True if same else None if set(gold.signs) == {"="} else same


_BY_TYPE: tuple[tuple[type, Callable[[Value, Value], Result]], ...] = (
    (Piecewise, _piecewise),
    (Family, _families),
    (Nothing, _nothing),
    (Assignments, _named),
    (Matrix, _matrices),
    (Reals, _reals),
    (Ratio, _ratios),
    (Sequence, _sequences),
)
