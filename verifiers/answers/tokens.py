r"""Tokens of an answer in LaTeX, Unicode or plain text. Nothing is evaluated here.

Commands and signs of one meaning become one token: `\times`, `\cdot`, `*` and `×` are the sign "*". Commands of style
and size, spaces and dollar signs leave no token. Inside `\text{}` every run of letters is a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from verifiers.answers.scanner import MAX_TOKENS, Scanner
from verifiers.answers.syntax import (
    COMMANDS,
    FORMULAS,
    FULL_WIDTH,
    FUNCTION_WORDS,
    GLUED,
    GREEK,
    INVISIBLE,
    NUMBER_SETS,
    STYLES,
    TEXT_STYLES,
    UNIT_LETTERS,
    Token,
    UnreadableError,
    with_commas,
)

ARROW = "\u20d7"  # behind the two ends of a vector: that from B to A is another one
UNIT_VECTORS = {"i": "î", "j": "ĵ", "k": "k̂"}
_WIDE_SPACES = ("quad", "qquad")
_FONTS = ("mathrm", "operatorname", "mathbf", "boldsymbol", "mathit", "mathsf", "bm", "mathcal")
_BOLD = ("mathbf", "boldsymbol", "bm")
_DOTS = {"dot": "\u0307", "ddot": "\u0308"}
_MARKS = _DOTS | {"bar": "\u0304", "overline": "\u0304"}  # over one letter: the conjugate of z is not z
_LINES = ("underline", "overline")  # also over and under numbers; any other accent makes a name of a letter
_VECTORS = ("vec", "hat", "overrightarrow", "widehat")
_ACCENTS = (*_LINES, *_VECTORS, *_DOTS, "bar", "tilde")
_NAME = re.compile(r"\\([A-Za-z]+)")
_ROW_SPACE = re.compile(r"\[[^\]]*(?:pt|em|ex|mm|cm)\]")
_ARGUMENT = re.compile(r"\s*\{[^{}]*\}")
_ENVIRONMENT = re.compile(r"\s*\{([A-Za-z]+)(\*?)\}")
_COLUMNS = re.compile(r"\{[lcr| ]*\}|\{\*\{[0-9]+\}\{[lcr| ]*\}\}")
_BRACED = re.compile(r"\{([^{}]*)\}")
_NUMERAL = re.compile(r"(?=.*[a-z])[a-z0-9]{2,}")  # the digits of a number: \\overline{abc}
_SILENT = '"$~\u2061\u2062'
_IGNORED = '"$\u2061\u2062'  # leave no space either
_DOUBLED = re.compile(r"(?<!\\)\\\\(?=[A-Za-z{}])")
_SINGLE = re.compile(r"(?<!\\)\\(?!\\)")


@lru_cache(maxsize=4096)
def tokenize(text: str) -> tuple[Token, ...]:
    """The tokens of an answer. UnreadableError for an unknown command or character, and over MAX_TOKENS."""
    text = text if text.isascii() else text.translate(FULL_WIDTH)
    if "\\\\" in text and not _SINGLE.search(text):  # LaTeX that is escaped twice
        text = _DOUBLED.sub(r"\\", text)
    scanner = _Reader(text)
    scanner.scan()
    has_borders = scanner.borders or scanner.quads
    return tuple(with_commas(scanner.tokens, scanner.borders, scanner.quads) if has_borders else scanner.tokens)


def spans(text: str) -> list[tuple[Token, int, int]]:
    """The tokens of any text, with the place where each begins and ends; "unknown" ones where the grammar knows none.

    The scanner rewrites what is before it, so places are counted from the end.
    """
    scanner = _Reader(text if text.isascii() else text.translate(FULL_WIDTH))
    places: list[tuple[int, int]] = []
    while (left := len(scanner.text) - scanner.at) > 0:
        last = scanner.tokens[-1:]
        try:
            scanner.read_next()
        except UnreadableError:
            scanner.at += len(scanner.text) - scanner.at >= left
            scanner.add("unknown", "")
        start, end = len(text) - left, len(text) - len(scanner.text) + scanner.at
        place = max(start, places[-1][0] if places else 0), end
        places += [place] * (len(scanner.tokens) - len(places))
        if last and last[0] is not scanner.tokens[len(places) - 1] and len(scanner.tokens) == len(places):
            places[-1] = places[-1][0], end  # the number has got its period: 0.1\overline{6}
    return [(token, *place) for token, place in zip(scanner.tokens, places, strict=True)]


class _Reader(Scanner):
    """Reads commands, beside other characters."""

    def scan(self) -> None:
        while self.at < len(self.text):
            self.read_next()
            if len(self.tokens) > MAX_TOKENS:
                raise UnreadableError("too many tokens")
        if self.closing and self.closing != ["$"]:
            raise UnreadableError("a brace is not closed")

    def read_next(self) -> None:
        """Read the character here, or the command, number or run that begins with it."""
        character = self.peek()
        if character == "\\":
            self._command()
        elif character in "{}":
            self.at += 1
            self._brace(character)
        elif character == "$" and (self.is_currency() or self.is_text or self.closing[-1:] == ["$"]):
            self.character("$") if self.is_currency() else self._formula_in_text()
        elif character == "~" and self._is_approximation():
            self.character("≈")
        elif character.isspace() or character in _SILENT:
            self._space(character)
        elif self.is_number():
            self.number()
        elif character.isascii() and character.isalpha():
            self.letters()
        elif "\u4e00" <= character <= "\u9fff":
            self.han()
        else:
            self.character(character)

    def _space(self, character: str) -> None:
        if character == "\n":
            self.borders.add(len(self.tokens))
        elif character == "$":
            self._formula(is_open=self.formula_end != -1)
        self.gap = self.gap or character not in _IGNORED
        self.at += 1

    def _formula(self, *, is_open: bool) -> None:
        """Begin a formula, behind a border where the last one has just ended, or end it."""
        if is_open and self.formula_end == len(self.tokens):
            self.borders.add(len(self.tokens))
        self.formula_end = -1 if is_open else len(self.tokens)

    def _is_approximation(self) -> bool:
        """Whether the tilde here begins the answer, ~100, or stands between spaces, and is no space."""
        is_first = not self.tokens and not self.text[: self.at].strip(" $") and self.peek(1).isdigit()
        return is_first or self.text[self.at - 1 : self.at + 2] == " ~ "

    def _formula_in_text(self) -> None:
        r"""A dollar sign in `\text{}` begins a formula if there is another one, which ends it."""
        self.at += 1
        self.gap = True
        if not self.is_text:
            self.closing.pop()
        elif "$" in self.text[self.at :]:
            self.closing.append("$")

    def _brace(self, brace: str) -> None:
        if brace == "{" and self.peek() in tuple("+-=<>:*/") and self.peek(1) == "}":  # {-}7
            self.replace(2, f"{self.peek()} ")
        elif brace == "{" and self.peek() == "}" and not self.is_text and self.peek(1) not in ("^", "_", "{"):
            self.at += 1  # {} is empty
        elif brace == "{":
            self.closing.append("text" if self.is_text else "}")
            if not self.is_text:
                self.sign("{")
        else:
            self._close()

    def _close(self) -> None:
        if self.closing[-1:] == ["$"]:
            self.closing.pop()
        if not self.closing:
            raise UnreadableError("a brace is not open")
        kind = self.closing.pop()
        self.gap = self.gap or kind == "text"
        if kind.startswith("mark "):  # \hat{84} is an estimate, not 84
            marked = self.tokens[int(kind.removeprefix("mark ")) :]
            is_name = marked and marked[0].kind in ("letter", "word")
            if not is_name or any(token.is_sign("+", "-", "*", "/", "^") for token in marked):
                raise UnreadableError("an accent over a value")
        if kind == "}" or kind.startswith("end "):
            self.sign(kind)

    # -------------------------------------------------------------------------------------------- commands

    def _command(self) -> None:
        found = self.take(_NAME)
        if found is None:
            self._escape()
            return
        name = found[1]
        kind = self._kind(name)
        if kind is None and (known := next((each for each in GLUED if name.startswith(each)), "")):
            self.at -= len(name) - len(known)  # \quadx, \lex
            name, kind = known, self._kind(known)
        if kind is None:
            raise UnreadableError(f"command {name}")
        kind(self, name)

    def _kind(self, name: str) -> Callable[[_Reader, str], None] | None:
        """The method that reads a command; None for an unknown one."""
        return _KINDS.get(name)

    def _symbol(self, name: str) -> None:
        kind, text = COMMANDS[name]
        if name == "prime":
            self._superscript_prime()
        self.gap = self.gap or kind == "word"
        self.symbol(kind, text)

    def _style(self, name: str) -> None:
        if name in ("left", "right", "middle"):
            self.skip_spaces()
            self.at += self.peek() == "."
        self.gap = self.gap or name in (*_WIDE_SPACES, "thinspace", "space", "hspace")
        self.quads |= {len(self.tokens)} if name in _WIDE_SPACES else set()

    def _open(self, kind: str) -> None:
        """Enter the braces that must follow; they leave no token."""
        self.skip_spaces()
        if not self.text.startswith("{", self.at):
            raise UnreadableError("a brace is missing")
        self.at += 1
        self.closing.append(kind)
        self.gap = self.gap or kind == "text"

    def _escape(self) -> None:
        r"""A backslash before a sign: `\{`, `\,`, `\%`, `\\`."""
        sign = self.peek(1)
        self.at += 2
        if sign in ",;: !":
            self.gap = self.gap or sign != "!"
        elif sign in "{}":
            self.sign("\\" + sign)
        elif sign == "\\":
            self.sign("\\\\")
            self.take(_ROW_SPACE)
        elif sign in "()[]":
            self._formula(is_open=sign in "([")
            self.gap = True
        elif sign == "|":
            self.sign("‖")
        elif sign in "%$&#":
            self.at -= 1
            self.character(sign)
        else:
            raise UnreadableError("backslash")

    def _font(self, name: str) -> None:
        r"""`\mathrm{e}` is the letter, `\mathrm{cm}` and `\operatorname{cis}` are words or functions."""
        self.skip_spaces()
        content, _, _ = self.text[self.at + 1 :].partition("}")
        bare = content.strip(" ~\\,")
        is_unit = name == "mathrm" and bool(self.tokens) and (self.tokens[-1].kind == "number" or self.last_is("}"))
        if self.peek().isalpha():
            self.add("letter", self.peek())
            self.at += 1
        elif self.peek() != "{":
            raise UnreadableError("a font of what?")
        elif not (bare.isascii() and bare.isalpha()):
            self._open("units" if is_unit else "")
        else:
            self.at += len(content) + 2
            if bare.lower() in FUNCTION_WORDS:
                self.function(FUNCTION_WORDS[bare.lower()])
            elif bare in NUMBER_SETS and name in _BOLD:
                self.sign(NUMBER_SETS[bare])
            elif is_unit and bare in UNIT_LETTERS:
                self.word(bare)
            elif len(bare) == 1:
                self.add("letter", UNIT_VECTORS.get(bare, bare) if name in _BOLD else bare)
            else:
                self.word(bare if bare.isupper() else bare.casefold())

    def _skip_argument(self, name: str) -> None:
        """A colour, a tag or a space: its argument is not part of the answer."""
        for _ in range(2 if name == "fcolorbox" else 1):
            if not self.take(_ARGUMENT):
                raise UnreadableError("an argument")
        self.gap = True

    def _number_set(self, _name: str) -> None:
        r"""`\mathbb{Z}` and `\mathbb Z`; `\mathbb{E}` is a letter."""
        self.skip_spaces()
        size = 3 if self.peek() == "{" else 1
        letter = self.text[self.at : self.at + size].strip("{}")
        if len(letter) != 1 or not letter.isalpha():
            raise UnreadableError("a letter of another kind")
        self.at += size
        self.symbol(*(("sign", NUMBER_SETS[letter]) if letter in NUMBER_SETS else ("letter", letter)))

    def _environment(self, name: str) -> None:
        found = self.take(_ENVIRONMENT)
        if found is None:
            raise UnreadableError("environment")
        if found[1] in FORMULAS:
            return
        self.depth += 1 if name == "begin" else -1
        self.add("sign", f"{name} {found[1]}")
        if found[1] == "array" and name == "begin" and self.peek() == "{" and not self.take(_COLUMNS):
            raise UnreadableError("columns")

    def _accent(self, name: str) -> None:
        r"""A bar or dot over the digits of a decimal marks its period; over letters, a segment or a vector."""
        last = self.tokens[-1] if self.tokens else None
        self.skip_spaces()
        braced = _BRACED.match(self.text, self.at)
        content = (
            self.peek()
            if self.peek().isdigit()
            else braced[1]
            if braced
            else self.text[self.at + 1 :].partition("}")[0]
        )
        size = len(content) + 2 * (self.peek() == "{")
        letter = content.strip(" \\math{") if braced else self.peek()
        is_decimal = last is not None and last.kind == "number" and "." in last.text and not self.gap
        if is_decimal and name in ("overline", "bar", "dot") and content.isdigit() and content.isascii():
            self._period(name, content, size)
        elif name in _VECTORS and letter in UNIT_VECTORS:
            self.add("letter", UNIT_VECTORS[letter])
            self.at = self.text.index("}", self.at) + 1 if braced else self.at + 1
        elif name == "overline" and _NUMERAL.fullmatch(content) and braced:
            digits = "+".join(f"10^{{{len(content) - 1 - place}}}*{digit}" for place, digit in enumerate(content))
            self.replace(size, f"({digits})")
        elif name in _VECTORS and braced and len(content) == 2 and content.isalpha() and content.isupper():
            self.add("letter", content + ARROW)
            self.at += size
        elif name in _MARKS and (content if braced else self.peek()).isalpha() and len(content if braced else "x") == 1:
            self.add("letter", (content if braced else self.peek()) + _MARKS[name])
            self.at += size if braced else 1
        elif self.peek() == "{" and name not in _DOTS:
            is_name = name not in _LINES or (name == "overline" and re.search(r"[-+]", content))  # a conjugate
            self._open(f"mark {len(self.tokens)}" if is_name else "")
        elif name not in _VECTORS or not self.peek().isalpha() or self.peek(1).isalpha():  # \vec b
            raise UnreadableError("accent")

    def _period(self, name: str, content: str, size: int) -> None:
        r"""The period of `0.1\overline{6}`, also from one dot to another: `0.\dot{1}42\dot{8}`."""
        last = self.tokens[-1]
        head, mark, period = last.text.partition("r")
        if mark and name != "dot":
            raise UnreadableError("two periods")
        self.at += size
        digits = re.match(r"[0-9]*", self.text[self.at :])
        between = digits[0] if digits and name == "dot" else ""
        if between and not self.text.startswith("\\dot", self.at + len(between)):
            raise UnreadableError("digits after a period")
        self.at += len(between)
        self.tokens[-1] = Token("number", f"{head}r{period}{content}{between}", last.gap)

    def _negated(self, _name: str) -> None:
        r"""`\not=`, `\not\in` and `\not\equiv`."""
        self.skip_spaces()
        for text, sign in (("=", "≠"), ("\\in", "∉"), ("\\equiv", "≢")):
            if self.text.startswith(text, self.at) and not self.peek(len(text)).isalpha():
                self.at += len(text)
                self.sign(sign)
                return
        raise UnreadableError("what is denied?")

    def _superscript_prime(self) -> None:
        r"""`^\prime` and `^{\prime}` are the prime alone."""
        is_braced = [token.text for token in self.tokens[-2:]] == ["^", "{"] and self.peek() == "}"
        if is_braced:
            self.closing.pop()
            self.at += 1
        if is_braced or self.last_is("^"):
            del self.tokens[-1 - is_braced :]


_KINDS: dict[str, Callable[[_Reader, str], None]] = {
    **dict.fromkeys(COMMANDS, _Reader._symbol),
    **dict.fromkeys(FUNCTION_WORDS, lambda reader, name: reader.function(FUNCTION_WORDS[name])),
    **dict.fromkeys(GREEK, lambda reader, name: reader.add("letter", GREEK[name])),
    **dict.fromkeys(("mathbb", "Bbb"), _Reader._number_set),
    **dict.fromkeys(INVISIBLE, _Reader._skip_argument),
    "not": _Reader._negated,
    **dict.fromkeys(("mathbin", "mathrel", "mathop", "mathord"), lambda reader, _: reader._open("")),
    **dict.fromkeys(_ACCENTS, _Reader._accent),
    **dict.fromkeys(("begin", "end"), _Reader._environment),
    **dict.fromkeys(_FONTS, _Reader._font),
    **dict.fromkeys(TEXT_STYLES, lambda reader, _: reader._open("text")),
    **dict.fromkeys(STYLES, _Reader._style),
}
