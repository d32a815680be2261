r"""Runs of letters: words that are functions or constants, words of the grammar, single letters, words in `\text{}`."""

from __future__ import annotations

from itertools import takewhile

from verifiers.answers.number_scanner import NumberScanner
from verifiers.answers.symbols import CONSTANT_WORDS, FUNCTION_WORDS, SMALL_WORDS, WORDS

LIBRARIES = frozenset(["np", "numpy", "math", "sympy", "cmath"])  # np.arcsin(1/4)
_IN_FRONT = ("{", "(", "-", "+", "*", "/")  # of a product of two letters
_BEHIND = tuple("})-+*/^_")
_SHORT_UNITS = ("cm", "mm", "km", "kg", "hr", "ft", "mi", "lb", "oz", "yd", "pt")
_NO_PRODUCTS = ("or", "if", "in", "am", "pm", "no", "is", "to", "by", *_SHORT_UNITS)
UNIT_LETTERS = frozenset("msghNJWLKVA")  # upright behind a number: 5 \mathrm{m}
_UNIT_WORDS = (
    "kJ kW kN kPa Pa Hz kHz MHz GHz mL nm eV keV MeV MW AU pc kpc Mpc erg dyn tsp mpg cu ohm mol yen ml cc wk yr"
)
_UNITS = frozenset(_UNIT_WORDS.split())
_DIGIT_ARGUMENTS = {"frac": 2, "binom": 2, "sqrt": 1}  # arguments of one digit each, where they have no braces
# Others may be words of English ("sec", "floor", "factorial").
_FUNCTIONS_IN_TEXT = frozenset(
    name for name in FUNCTION_WORDS if name[:3] in ("sin", "cos", "tan", "cot", "csc", "arc", "cis", "ln", "log", "exp")
)


class LetterScanner(NumberScanner):
    """Reads runs of letters, beside numbers."""

    def _letters(self) -> None:
        start = self.at
        while self._peek().isascii() and self._peek().isalpha():
            self.at += 1
        run = self.text[start : self.at]
        word = run.casefold()
        if run in LIBRARIES and self._peek() == "." and self._peek(1).isalpha():
            self.at += 1
        elif self.is_text:
            self._word_in_text(run, word)
        elif (self.closing[-1:] == ["units"] and run in UNIT_LETTERS) or self._is_unit(run):
            self.add("word", run)
        elif self.short_digits and len(run) <= 2 and word not in CONSTANT_WORDS:
            for letter in run:
                self.add("letter", letter)
        elif word in FUNCTION_WORDS and not (len(run) > 1 and run.isupper() and word not in ("pi", "log")):
            self._function(FUNCTION_WORDS[word])
            self.short_digits *= word != "sqrt"  # sqrt17 in plain text
        elif word in CONSTANT_WORDS:
            kind, text = CONSTANT_WORDS[word]
            self.sign(text) if kind == "sign" else self.add(kind, text)
        elif not self._is_product(run) and (
            run in SMALL_WORDS or (word in WORDS and (run.islower() or run.isupper() or self._peek() != "^"))
        ):  # but Be^x
            self.add("word", word)
        elif len(run) == 3 and word.endswith("pi"):
            self.add("letter", run[0])
            self.add("letter", "π")
        elif len(run) <= 3 and not (len(run) == 3 and run.istitle()):
            for letter in run:
                self.add("letter", letter)
        else:
            self.add("word", word)

    def _is_unit(self, run: str) -> bool:
        """Whether a run is a unit whose letters could be a product: `100 kJ` behind a number and a space, `Rs 500`."""
        if run == "Rs":
            return self.text[self.at :].lstrip(". ")[:1].isdigit()
        is_behind = bool(self.tokens) and self.gap and (self.tokens[-1].kind == "number" or self.tokens[-1].text == "}")
        return is_behind and (run in _UNITS or (run == "sec" and not self.text[self.at :].strip(". ")))

    def _is_product(self, run: str) -> bool:
        r"""Whether two letters that could be a word touch mathematics on both sides, as in `e^{it}` and `\cosh(at)`."""
        is_behind = bool(self.tokens) and not self.gap and self.tokens[-1].text in _IN_FRONT
        return len(run) == 2 and run not in _NO_PRODUCTS and is_behind and self._peek() in _BEHIND

    def _word_in_text(self, run: str, word: str) -> None:
        if word in _FUNCTIONS_IN_TEXT:
            self._function(FUNCTION_WORDS[word])
        elif word == "o" and self.tokens and self.tokens[-1].is_sign("^"):
            self.sign("°")
        elif len(run) == 1 and not (word == "a" and self._is_article(run)) and not self._is_after_value():
            self.add("letter", run)
        elif word in ("pi", "sqrt"):
            self._function("sqrt") if word == "sqrt" else self.add("letter", "π")
        else:
            self.add("word", word)

    def _is_article(self, run: str) -> bool:
        """Whether an a stands in front of another word; in `\\text{A, B}` and `\\text{A and B}` it is a letter."""
        rest = self.text[self.at :].lstrip()
        following = "".join(takewhile(str.isalpha, rest[:12]))
        if following in ("and", "or", "is", "are"):
            return False
        return len(following) > 1 if run == "A" else rest[:1] not in (",", ";", ")")

    def _is_after_value(self) -> bool:
        """Whether a letter in text stands behind a value, as a unit does: `5\\text{ m}`."""
        return bool(self.tokens) and (self.tokens[-1].kind != "word" and self.tokens[-1].text not in ("(", "[", ","))

    def _function(self, name: str) -> None:
        self.add("function", name)
        self.short_digits = _DIGIT_ARGUMENTS.get(name, 0)
