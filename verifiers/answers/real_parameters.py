r"""Real parameters, declared behind an answer ("where $c \in \mathbb{R}$", "for any constant a") or undeclared."""

from __future__ import annotations

from collections.abc import Callable

from verifiers.answers.comparison import equal_expressions
from verifiers.answers.names import name_of
from verifiers.answers.number_sets import number_set
from verifiers.answers.real_families import equal_real_families
from verifiers.answers.reals import ALL_REALS, as_reals
from verifiers.answers.results import Result
from verifiers.answers.slices import Tokens, at_signs, cut
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import Node, has, names, number, replace_symbols, subtract, symbol
from verifiers.answers.values import (
    Assignments,
    Expression,
    Family,
    Function,
    RealFamily,
    Reals,
    Relation,
    Sequence,
    Value,
)

_NOISE_WORDS = "is are a an any arbitrary real constant constants some fixed the all every each be const"
_NOISE = frozenset(_NOISE_WORDS.split())
_MARKERS = frozenset(["arbitrary", "real", "constant", "constants", "const", "fixed"])
_SETS = frozenset(("ℝ", "ℝ+", "ℝ-", "ℝ≥0", "ℝ≠0"))
_VARIABLES = frozenset("xyztuvsrθ")
_SOLUTIONS = frozenset(("y", "f", "g", "u", "F", "h", "x", "z"))  # names of solutions of differential equations
_FACTORS = frozenset("ckC")  # letters that are constants beside the argument of a function
_NO_CONSTANTS = frozenset("xyzn")  # letters that are taken for constants only where they are declared

Statement = Callable[[Tokens], Value]
Parameters = list[tuple[str, Reals]]


def take_declarations(
    value: Value, pieces: list[list[Token]], statement: Statement, integers: frozenset[str]
) -> tuple[Parameters, list[list[Token]]]:
    """The real parameters of a value that the conditions behind it declare, and the other conditions.

    A bound on one of the letters `integers` is left among the other conditions.
    """
    letters = _letters(value)
    if len(letters) < 2 and isinstance(value, Expression) and not has(value.node, "i"):
        return [], pieces
    parameters: Parameters = []
    rest = []
    for piece in pieces:
        declared = _declaration(piece, statement)
        is_bound = len(piece) > 1 and piece[1].is_sign("<", ">", "≤", "≥", "≠") and piece[0].text in integers
        if declared and {name for name, _ in declared} <= letters and not is_bound:
            parameters += declared
        else:
            rest.append(piece)
    return parameters, rest


def _declaration(piece: list[Token], statement: Statement) -> Parameters | None:
    """[(c, the reals)] of `c ∈ ℝ`, "c is any constant", "c"; [(t, an interval)] of `t ≥ 0`; None for others."""
    has_marker = any(token.is_word(*_MARKERS) for token in piece)
    bare = [token for token in piece if not token.is_word(*_NOISE)]
    sides, belongs = cut(bare, at_signs("∈"))
    if len(belongs) == 2 and not sides[2] and has_marker:  # c ∈ ℝ is a constant
        sides, belongs = sides[:2], belongs[:1]
    domain: Reals | None = ALL_REALS
    if len(belongs) == 1 and all(sides):
        domain = _set(sides[1], statement)
    elif belongs and not sides[-1] and has_marker:
        sides = sides[:-1]
    elif len(sides) == 2 and sides[0] and not sides[1] and has_marker:
        sides = sides[:1]
    elif any(token.is_sign(*_SETS) for token in bare):
        sign = next(token for token in bare if token.is_sign(*_SETS))
        domain, sides = _set([sign], statement), [[token for token in bare if token is not sign]]
    elif has_marker and any(token.is_sign("<", ">", "≤", "≥", "≠") for token in bare):  # any constant c > 0
        value = statement(bare)
        return [(value.name, value)] if isinstance(value, Reals) and value.name else None
    elif not has_marker and any(token.kind == "sign" and token.text not in (",", "_", "{", "}") for token in bare):
        value = statement(piece)
        return [(value.name, value)] if isinstance(value, Reals) and value.name else None
    letters = [name_of(part) for part in cut(sides[0], _is_separator)[0] if part]
    if domain is None or not letters or None in letters:
        return None
    return [(name, domain) for name in letters if name]


def _is_separator(token: Token) -> bool:
    return token.is_sign(",") or token.is_word("and")


def _set(tokens: list[Token], statement: Statement) -> Reals | None:
    try:
        return as_reals(number_set(tokens) or statement(tokens))
    except UnreadableError:
        return None


def real_family(value: Value, parameters: Parameters) -> RealFamily:
    """The family of a value for all values of its parameters."""
    name, argument, items = _parts(value)
    letters = frozenset().union(*(names(node) for item in items for node in item))
    if not {each for each, _ in parameters} <= letters:
        raise UnreadableError("parameters that are not those of the family")
    return RealFamily(tuple(items), tuple(parameters), name, argument)


def _parts(value: Value) -> tuple[str, str, list[tuple[Node, ...]]]:
    """(name, argument, items) of a function, a named expression, a tuple, or a list of them."""
    if isinstance(value, Function):
        return value.name, value.argument, [(value.node,)]
    if isinstance(value, Relation) and value.signs == ("=",) and value.sides[0].op == "symbol":
        return value.sides[0].name, "", [(value.sides[1],)]
    if isinstance(value, Assignments) and len(value.names) == 1:
        _, argument, items = _parts(value.items[0])
        return value.names[0], argument, items
    if isinstance(value, Assignments):
        pairs = sorted(zip(value.names, value.items, strict=True), key=lambda pair: pair[0])
        return "", "", [tuple(_node(item) for _, item in pairs)]
    if isinstance(value, Sequence) and value.kind in ("tuple", "interval"):
        return "", "", [tuple(map(_node, value.items))]
    if isinstance(value, Sequence):
        rows = [_parts(item) for item in value.items]
        if len({(name, argument) for name, argument, _ in rows}) == 1:
            return rows[0][0], rows[0][1], [item for _, _, items in rows for item in items]
    if isinstance(value, Expression):
        return "", "", [(value.node,)]
    raise UnreadableError("a family of other values")


def _node(value: Value) -> Node:
    if not isinstance(value, Expression):
        raise UnreadableError("a family of other values")
    return value.node


def _letters(value: Value) -> frozenset[str]:
    """The letters of a value beside the argument of a function."""
    try:
        _, argument, items = _parts(value)
    except UnreadableError:
        return frozenset()
    return frozenset().union(*(names(node) for item in items for node in item)) - {argument}


def as_real_families(gold: Value, answer: Value) -> tuple[Value, Value]:
    """Both sides as families where one is a family with real parameters or the gold has constants of integration."""
    if not isinstance(gold, RealFamily) and not isinstance(answer, RealFamily):
        constants = _constants_of_integration(gold)
        if not constants:
            return gold, answer
        gold = real_family(gold, [(name, ALL_REALS) for name in sorted(constants)])
    if isinstance(gold, RealFamily):
        return gold, answer if isinstance(answer, RealFamily) else _opened(answer, gold)
    assert isinstance(answer, RealFamily)
    return _opened(gold, answer), answer


def _opened(value: Value, family: RealFamily) -> Value:
    """A value beside a family: its letters that are no variables of the family are parameters."""
    sizes = {len(item) for item in family.items}
    if isinstance(value, Assignments) and len(value.equal_letters()) in sizes:  # x = y = z beside (t, t, t)
        letter = symbol(value.equal_letters()[-1])
        value = Sequence("tuple", tuple(Expression(letter) for _ in value.equal_letters()))
    try:
        name, argument, items = _parts(value)
    except UnreadableError:
        return value
    letters = frozenset().union(*(names(node) for item in items for node in item))
    variables = frozenset().union(*(names(node) for item in family.items for node in item))
    variables -= {each for each, _ in family.parameters}
    if argument and family.argument:
        variables = (variables - {family.argument}) | {argument}
    free = letters - variables - {argument}
    if free & _NO_CONSTANTS and (variables or not isinstance(value, Sequence)):
        return value
    return RealFamily(tuple(items), tuple((each, ALL_REALS) for each in sorted(free)), name, argument)


def _constants_of_integration(value: Value) -> frozenset[str]:
    r"""The letters of a gold that stand for constants: C in `x^2 + C` and `y = Ce^x`, C_1 and C_2."""
    try:
        name, argument, items = _parts(value)
    except UnreadableError:
        return frozenset()
    if len(items) != 1 or len(items[0]) != 1 or isinstance(value, Sequence):
        return frozenset()
    (node,) = items[0]
    letters = names(node)
    constants = frozenset(
        each for each in letters if each == "C" or (each[0] in "Cc" and each[1:2] == "_" and each[2:].isdigit())
    )
    if isinstance(value, Function) and len(letters - {argument}) == 1 and letters - {argument} <= _FACTORS:
        return letters - {argument}  # f(x) = cx
    is_open = constants and letters - constants and letters - constants <= _VARIABLES | {argument}
    if not is_open or (constants == {"C"} and not (name.partition("(")[0] in _SOLUTIONS or _is_added(node, "C"))):
        return frozenset()
    return constants


def _is_added(node: Node, name: str) -> bool:
    """Whether a letter is a summand of a tree, or of one factor of a product: `(t + C)e^{-t}`."""
    factors = [each for each in node.args if name in names(each)] if node.op in ("mul", "div", "neg") else []
    is_in_sum = len(factors) == 1 and has(factors[0], "add") and _is_added(factors[0], name)
    return is_in_sum or _is_summand(node, name)


def _is_summand(node: Node, name: str) -> bool:
    """Whether a letter has a constant factor, whatever the other letters are."""
    slope = subtract(*(replace_symbols(node, {name: number(value)}) for value in (1, 0)))
    at = {each: number(3) for each in names(slope)}
    return name in names(node) and equal_expressions(slope, replace_symbols(slope, at)) is True


def equal_as_real_families(gold: Value, answer: Value) -> Result:
    if isinstance(gold, RealFamily) and isinstance(answer, RealFamily):
        return equal_real_families(gold, answer)
    other = answer if isinstance(gold, RealFamily) else gold
    return False if isinstance(other, Expression | Sequence | Family) else None
