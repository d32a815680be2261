"""Tables of phrases: words that lead to an answer, and words that stand for a sign."""

from __future__ import annotations

from verifiers.answers.integer_phrases import ALL, INTEGER_SETS, INTEGERS

# Words before the answer that say nothing about it.
_LEAD_WORDS = (
    "the a final answer is are solution solutions set interval intervals value values therefore thus so hence we "
    "get have result equals point points pair pairs ordered roots root range domain union it be given by obtain "
    "only possible function functions equation that which all x-values triple triples quadruple quadruples coordinates "
    "total vector matrix inequality precisely exactly "
    "conclude find finally deduce follows clearly ans my our see giving "
    "correct count desired required requested vertex center centre midpoint"
)
LEADS = frozenset(_LEAD_WORDS.split())
LEADS_BEHIND = {"follows": "it", "see": "we"}  # words that lead only behind their subject

_REAL_PHRASES = (
    "all real numbers; all reals; any real number; every real number; real numbers; the real numbers; "
    "the set of real numbers; the set of all real numbers; set of real numbers; set of all real numbers; "
    "real line; all real values; all real values of; real number; the reals; reals; all the real numbers; any real; "
    "the entire real line; the real line; all real"
)
_REALS = _REAL_PHRASES.split("; ")
_EXCEPT = (
    "except",
    "except for",
    "excluding",
    "other than",
    "apart from",
    "with the exception of",
    "but not",
    "without",
    "different from",
    "not including",
)
_SAME = ("i e", "ie", "that is", "or equivalently", "equivalently", "in other words", "that is to say")


def _root(index: int) -> tuple[tuple[str, str], ...]:
    return (("function", "sqrt"), ("sign", "["), ("number", str(index)), ("sign", "]"))


PHRASES: dict[str, tuple[tuple[str, str], ...]] = {
    **INTEGER_SETS,
    **dict.fromkeys(_REALS, (("sign", "ℝ"),)),
    **dict.fromkeys(("all reals but", "all real numbers but", "reals but"), (("sign", "ℝ"), ("sign", "except"))),
    **{
        f"{the}{kind} interval": (("sign", f"{kind} interval"),)
        for the in ("", "the ", "an ", "a ")
        for kind in ("open", "closed")
    },
    **{
        f"{before}{kind} {noun}": (("sign", sign),)
        for before in ("", "all ", "the ", "any ", "every ", "the set of ", "the set of all ")
        for kind, sign in (
            ("positive", "ℝ+"),
            ("negative", "ℝ-"),
            ("nonnegative", "ℝ≥0"),
            ("non negative", "ℝ≥0"),
            ("nonzero", "ℝ≠0"),
            ("non zero", "ℝ≠0"),
        )
        for noun in (
            *("real numbers", "real number", "real values", "reals", "real"),
            *("real constant", "real constants", "constant", "constants"),
        )
    },
    **{
        f"{all_} {kind}": (("sign", sign),)
        for all_ in ("all", "every", "any")
        for kind, sign in (("positive", "ℝ+"), ("negative", "ℝ-"), ("nonnegative", "ℝ≥0"), ("nonzero", "ℝ≠0"))
    },
    **dict.fromkeys(_SAME, (("sign", "same"),)),
    **dict.fromkeys(_EXCEPT, (("sign", "except"),)),
    **dict.fromkeys(INTEGERS, (("sign", "ℤ"),)),
    **dict.fromkeys(
        (
            "positive integer",
            "positive integers",
            "a positive integer",
            "any positive integer",
            "all positive integers",
            "every positive integer",
            "each positive integer",
            "natural number",
            "natural numbers",
            "a natural number",
            "any natural number",
        ),
        (("sign", "ℤ1"),),
    ),
    **dict.fromkeys(
        (
            "nonnegative integer",
            "nonnegative integers",
            "a nonnegative integer",
            "any nonnegative integer",
            "non negative integer",
            "all nonnegative integers",
            "non negative integers",
        ),
        (("sign", "ℤ0"),),
    ),
    **{f"{before}greater than or equal to": (("sign", "≥"),) for before in ("", "is ", "are ")},
    **{f"{before}less than or equal to": (("sign", "≤"),) for before in ("", "is ", "are ")},
    **{f"{before}greater than": (("sign", ">"),) for before in ("", "is ", "are ", "is strictly ", "strictly ")},
    **{f"{before}less than": (("sign", "<"),) for before in ("", "is ", "are ", "is strictly ", "strictly ")},
    **{f"is {after}": (("sign", sign),) for after, sign in (("at least", "≥"), ("at most", "≤"), ("equal to", "="))},
    **{f"{before}not equal to": (("sign", "≠"),) for before in ("", "is ", "are ", "does ", "can be ")},
    "is not": (("sign", "≠"),),
    "does not equal": (("sign", "≠"),),
    "cannot equal": (("sign", "≠"),),
    "cannot be": (("sign", "≠"),),
    "equals": (("sign", "="),),
    "is positive": (("sign", ">"), ("number", "0")),
    "is negative": (("sign", "<"), ("number", "0")),
    "is nonnegative": (("sign", "≥"), ("number", "0")),
    "is non negative": (("sign", "≥"), ("number", "0")),
    **dict.fromkeys(("union", "union with", "in union with"), (("sign", "∪"),)),
    "intersection": (("sign", "∩"),),
    "is in": (("sign", "∈"),),
    "in": (("sign", "∈"),),
    "is in the interval": (("sign", "∈"),),
    **dict.fromkeys(
        ("outside", "outside of", "outside the interval", "is outside", "is outside of", "not in", "is not in"),
        (("sign", "∉"),),
    ),
    **dict.fromkeys(("inside", "is inside", "lying in", "inside the interval"), (("sign", "∈"),)),
    **dict.fromkeys(("diverges to", "holds for", "is true for", "is satisfied for", "is satisfied by"), ()),
    **{
        f"{before}{kind}{noun}": ()
        for before in ("", "all ", "the ")
        for kind in ("linear ", "quadratic ", "constant ", "exponential ")
        for noun in ("functions", "polynomials")
    },
    "the system is inconsistent": (("sign", "∅"),),
    "in the interval": (("sign", "∈"),),
    "can be": (("sign", "∈"),),
    "is any": (("sign", "∈"),),
    "can be any": (("sign", "∈"),),
    "belongs to": (("sign", "∈"),),
    "is a": (("sign", "∈"),),
    "is an": (("sign", "∈"),),
    "may be": (("sign", "∈"),),
    "to": (("sign", ":"),),
    **{
        f"{before}{parity}{noun}": (("sign", parity),)
        for parity in ("even", "odd")
        for before in ("", "is ", "is an ", "an ", "all ", "every ", "any ", "the ", "must be ", "has to be ", "be ")
        for noun in ("", " integer", " integers", " number", " numbers")
    },
    **{
        f"{before}{kind} {noun}": (("sign", "ℤ1"), ("sign", parity))
        for parity in ("even", "odd")
        for kind in (f"positive {parity}", f"{parity} positive")
        for before in ALL
        for noun in ("integer", "integers", "number", "numbers")
    },
    "such that": (("sign", "such"),),
    "so that": (("sign", "such"),),
    "satisfying": (("sign", "such"),),
    "plus": (("sign", "+"),),
    "minus": (("sign", "-"),),
    "negative": (("sign", "-"),),
    "times": (("sign", "*"),),
    "plus or minus": (("sign", "±"),),
    "squared": (("sign", "^"), ("number", "2")),
    "cubed": (("sign", "^"), ("number", "3")),
    **dict.fromkeys(("out of", "out of every"), (("sign", "/"),)),
    "over": (("sign", "/"),),
    **{
        f"{article}{name} root of": signs
        for article in ("", "the ")
        for name, signs in (
            ("square", (("function", "sqrt"),)),
            ("cube", (("function", "cbrt"),)),
            ("cubic", (("function", "cbrt"),)),
            *((word, _root(index)) for index, word in enumerate(("fourth", "fifth", "sixth", "seventh"), 4)),
        )
    },
    **dict.fromkeys(("is not less than", "not less than", "is no less than", "no less than"), (("sign", "≥"),)),
    **dict.fromkeys(
        ("is not more than", "not more than", "is no more than", "is not greater than", "not greater than"),
        (("sign", "≤"),),
    ),
    **{
        f"{before}at {most}": (("sign", sign),)
        for before in ("that are ", "which are ", "are ", "", "that is ", "which is ")
        for most, sign in (("least", "≥"), ("most", "≤"))
    },
    **{
        f"{before}{than} than": (("sign", sign),)
        for before in ("that are ", "which are ", "that are strictly ", "that is ", "which is ")
        for than, sign in (("greater", ">"), ("larger", ">"), ("less", "<"), ("smaller", "<"))
    },
    "positive infinity": (("sign", "∞"),),
    "percent": (("sign", "%"),),
    **dict.fromkeys(("per cent", "pct", "percentage"), (("sign", "%"),)),
    "choose": (("sign", "choose"),),
    "modulo": (("word", "mod"),),
    **dict.fromkeys(("not congruent to", "is not congruent to", "are not congruent to"), (("sign", "≢"),)),
    **{
        f"{before}not {phrase}": (("sign", "≢"), ("number", "0"), ("word", "mod"))
        for before in ("", "is ", "are ", "that are ", "which are ")
        for phrase in ("divisible by", "a multiple of", "multiples of")
    },
    "is congruent to": (("sign", "≡"),),
    "are congruent to": (("sign", "≡"),),
    "congruent to": (("sign", "≡"),),
    "approximately": (("sign", "≈"),),
    "is approximately": (("sign", "≈"),),
    "approximately equal to": (("sign", "≈"),),
    **dict.fromkeys(("about", "around", "approx", "is about", "is around", "is roughly"), (("sign", "≈"),)),
    "roughly": (("sign", "≈"),),
    **dict.fromkeys(
        (
            "no solution",
            "no solutions",
            "no real solution",
            "no real solutions",
            "the empty set",
            "empty set",
            "none",
            "there is no solution",
            "there are no solutions",
            "does not exist",
            "no real roots",
            "no integer solutions",
            "no such numbers",
            "no such integers",
            "dne",
            "null set",
            "the null set",
            "no answer",
            "no positive integer solutions",
            "empty",
        ),
        (("sign", "∅"),),
    ),
    **dict.fromkeys(("is equal to", "is given by"), (("sign", "="),)),
    **dict.fromkeys(
        (
            "for all",
            "for any",
            "for every",
            "for some",
            "for each",
            "where",
            "with",
            "for",
            "as",
        ),
        (("word", "where"),),
    ),
}
