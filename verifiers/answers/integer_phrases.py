"""Phrases for sets of integers: multiples, remainders, powers, primes, ranges, and the integers themselves."""

from __future__ import annotations

INTEGERS = (
    "integer",
    "integers",
    "an integer",
    "any integer",
    "all integers",
    "some integer",
    "every integer",
    "the integers",
    "the set of integers",
    "the set of all integers",
    "arbitrary integer",
    "an arbitrary integer",
    "arbitrary integers",
    "each integer",
    "whole number",
)
ALL = ("", "all ", "any ", "every ", "the ", "a ", "is a ", "are ", "is ", "must be a ", "must be ", "some ")
_MULTIPLES = ("multiples of", "multiple of", "integer multiples of", "integer multiple of", "divisible by")
INTEGER_SETS: dict[str, tuple[tuple[str, str], ...]] = {
    **{f"{before}{phrase}": (("sign", "multiples"),) for before in ALL for phrase in _MULTIPLES},
    **{
        f"{before}{kind} multiple{end} of": (("sign", sign), ("sign", "multiples"))
        for before in ALL
        for kind, sign in (
            ("positive", "ℤ1"),
            ("positive integer", "ℤ1"),
            ("nonnegative", "ℤ0"),
            ("non negative", "ℤ0"),
        )
        for end in ("", "s")
    },
    **{
        f"{before}{verb}{article}remainder{of}": (("sign", "remainder"),)
        for before in ("", "that ", "which ")
        for verb in ("leave ", "leaves ", "leaving ", "with ", "have ", "has ", "give ", "gives ", "")
        for article in ("a ", "the ", "")
        for of in ("", " of")
    },
    **dict.fromkeys(
        ("when divided by", "upon division by", "on division by", "after division by", "if divided by"),
        (("sign", "when divided"),),
    ),
    "divided by": (("sign", "divided"),),
    **{
        f"{before}{kind}power{end} of": (*sign, ("sign", "powers"))
        for before in ALL
        for kind, sign in (
            ("", ()),
            ("positive ", (("sign", "ℤ1"),)),
            ("nonnegative ", (("sign", "ℤ0"),)),
            ("non negative ", (("sign", "ℤ0"),)),
            ("nonnegative integer ", (("sign", "ℤ0"),)),
            ("non negative integer ", (("sign", "ℤ0"),)),
            ("positive integer ", (("sign", "ℤ1"),)),
        )
        for end in ("", "s")
    },
    **{
        f"{before}{parity} multiple{end} of": (("sign", parity), ("sign", "multiples"))
        for before in ALL
        for parity in ("even", "odd")
        for end in ("", "s")
    },
    **{f"{before}prime{noun}": (("sign", "primes"),) for before in ALL for noun in ("", "s", " number", " numbers")},
    **{
        f"{before}{power}{end} of {article}prime{noun}": (("sign", "primes"), ("sign", "^"), ("number", exponent))
        for before in ALL
        for power, exponent in (("square", "2"), ("cube", "3"), ("fourth power", "4"))
        for end in ("", "s")
        for article in ("", "a ", "all ", "the ")
        for noun in ("", "s", " number", " numbers")
    },
    **{
        f"{before}{many}": (("sign", "∞many"),)
        for before in ("", "there are ", "there exist ", "an ")
        for many in ("infinitely many", "infinite number of", "infinite")
    },
    **{
        f"{before}{strictly}between": (("sign", sign),)
        for before in ("", "is ", "are ", "lies ", "lie ")
        for strictly, sign in (("", "between"), ("strictly ", "between"))
    },
    **{
        f"{before}integers {start}": (("sign", "ℤ"), ("sign", "closed between"))
        for before in ("", "all ", "the ", "all the ")
        for start in ("from", "between")
    },
    **{
        f"{before}{parity} integers {start}": (("sign", parity), ("sign", "closed between"))
        for before in ("", "all ", "the ", "all the ")
        for parity in ("even", "odd")
        for start in ("from", "between")
    },
    **{
        f"{before}{phrase}": (("sign", "coprime"),)
        for before in ("", "is ", "are ", "that are ", "which are ")
        for phrase in ("coprime to", "coprime with", "relatively prime to", "relatively prime with")
    },
    **{
        f"{the}{kind} interval {start}": (("sign", f"{kind} between"),)
        for the in ("", "the ")
        for kind in ("open", "closed")
        for start in ("from", "between")
    },
    **dict.fromkeys(
        (
            "and its permutations",
            "and permutations",
            "and all permutations",
            "and their permutations",
            "up to permutation",
            "and all its permutations",
            "and all permutations thereof",
            "and permutations thereof",
            "permutations of",
            "all permutations of",
            "any permutation of",
            "and all its permutations thereof",
        ),
        (("sign", "permutations"),),
    ),
    **dict.fromkeys(("including", "and including"), (("sign", "including"),)),
    **{
        f"{before}{phrase}": (("sign", f"{power}s"),)
        for before in ALL
        for power in ("square", "cube")
        for end in ("", "s")
        for phrase in (
            *(
                f"perfect {power}{end}",
                f"{power} number{end}",
                f"{power}{end} of integers",
                f"{power}{end} of an integer",
            ),
            f"{power}{end} of some integer",
        )
    },
    **dict.fromkeys(("of the form", "numbers of the form", "is of the form", "are of the form"), (("sign", "form"),)),
}
