r"""Letters with their indices, and binomial coefficients written with a C: `C(10,3)`, `{}^{10}C_3`, `C_{10}^{3}`."""

from __future__ import annotations

from abc import ABC, abstractmethod

from verifiers.answers.cursor import Cursor
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import PI, Node, multiply, names, symbol

_CONSTANTS = {"π": PI, "e": Node("e"), "i": Node("i")}


class CombinationReader(Cursor, ABC):
    """Reads letters at its position. What reads sums and the arguments of commands are subclasses."""

    @abstractmethod
    def sum(self) -> Node:
        """The sum at this position, as in brackets."""

    @abstractmethod
    def argument(self) -> Node:
        """One argument of a command: braces, or a single token."""

    def combinations(self, above: Node) -> Node:
        r"""`^{10}C_3` and `_{10}C_3`, from the letter on; with a P, the number of arrangements."""
        letter, self.at = self.here, self.at + 1
        if letter.text not in ("C", "P") or not self.take("_", "^"):
            raise UnreadableError("an index in front")
        below = self.argument()
        node = Node("binomial", (above, below))
        return node if letter.text == "C" else multiply(node, Node("factorial", (below,)))

    def letter(self, token: Token) -> Node:
        if token.text == "C" and self.here.is_sign("(") and (pair := self.pair()):
            return Node("binomial", pair)
        if token.text == "C" and self.here.is_sign("_") and (node := self._chosen()):
            return node
        name = token.text + self.subscript()
        while self.take("'"):
            name += "'"
        is_zero = self.ahead().text == "0" and self.ahead(2).is_sign(")")
        is_function = is_zero or name in ("f", "g", "h", "f'", "P", "F", "G")
        if is_function and self.here.is_sign("(") and not self.here.gap:
            raise UnreadableError("a function's value")
        return _CONSTANTS.get(name) or symbol(name)

    def _chosen(self) -> Node | None:
        """`C_{10}^{3}` with two natural numbers, `C_{2n}^n`; None for another index."""
        start = self.at
        is_index = self.take("_") and (
            self.here.kind == "number" or self.here.is_sign("{") or self.ahead().is_sign("^")
        )
        above = self.argument() if is_index else None
        if above is not None and self.take("^"):
            below = self.argument()
            are_numbers = above.op == below.op == "number" and below.value <= above.value
            if are_numbers or names(above):  # C_{2n}^{n}
                return Node("binomial", (above, below))
        self.at = start
        return None

    def pair(self) -> tuple[Node, Node] | None:
        """The two arguments of C(10,3); None where there are not two."""
        start = self.at
        self.expect("(")
        first = self.sum()
        if self.take(","):
            second = self.sum()
            self.expect(")")
            return first, second
        self.at = start
        return None
