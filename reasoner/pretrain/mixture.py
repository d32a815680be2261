"""Mixtures: the shares of problems, styles and drills that a corpus of the embedded base consists of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from data.families import LEVELS
from reasoner.pretrain.solutions import Working

Shares = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Mixture:
    """Shares of a corpus; those of one mapping add up to 1. The defaults are the first stage of the embedded base."""

    drills: float = 0.45  # share of the documents
    conversations: float = 0.3  # share of the problems in the R1-Zero template
    # Of the problems: more of the families that are hard to learn.
    families: Shares = field(
        default_factory=lambda: {"sums": 0.18, "products": 0.14, "equations": 0.22, "words": 0.22, "countdown": 0.24}
    )
    levels: tuple[int, ...] = LEVELS  # each entry is drawn equally often
    # Of the solution styles (reasoner.pretrain.solutions), in the R1-Zero template and in textbook form.
    conversation_styles: Shares = field(
        default_factory=lambda: {"guess": 0.58, "quick": 0.16, "steps": 0.12, "check": 0.14}
    )
    textbook_styles: Shares = field(
        default_factory=lambda: {"guess": 0.10, "quick": 0.10, "steps": 0.25, "check": 0.55}
    )
    drill_kinds: Shares = field(
        default_factory=lambda: {
            "facts": 0.06, "tables": 0.3, "workings": 0.18, "checks": 0.18, "comparisons": 0.08, "searches": 0.2,
        }
    )  # fmt: skip
    working: Working = field(default_factory=Working)


# To go on from a base of the defaults: divisions that show what is left after each digit, drills of carries and of the
# digits of quotients, harder problems, and checks that are rare under the template, where unchecked steps are common.
# The template, which that base knows and which is long, takes less of the text.
_DIGITS = Mixture(
    drills=0.5,
    conversations=0.14,
    families={"sums": 0.14, "products": 0.12, "equations": 0.26, "words": 0.24, "countdown": 0.24},
    levels=(1,) * 5 + (2,) * 7 + (3,) * 8,
    conversation_styles={"guess": 0.56, "quick": 0.16, "steps": 0.25, "check": 0.03},
    drill_kinds={
        "facts": 0.03, "tables": 0.14, "short_steps": 0.2, "quotient_digits": 0.1, "long_products": 0.13,
        "workings": 0.1, "checks": 0.12, "comparisons": 0.03, "searches": 0.15,
    },
    working=Working(one_digit=True, quotient_slips=0.7, random_quotients=0.5),
)  # fmt: skip

MIXTURES = {"places": Mixture(), "digits": _DIGITS}


def with_checks(
    mixture: Mixture, *, conversations: float | None = None, textbooks: float | None = None, corrections: bool = True
) -> Mixture:
    """The mixture with other shares of checked solutions, in the R1-Zero template and in textbook form (None: its own);
    the other styles share the rest as before. No checks in textbooks: none in drills either, nor comparisons.
    corrections=False: checks never find an error. ValueError for shares outside 0 to 1.
    """
    if conversations is not None:
        mixture = replace(mixture, conversation_styles=_with_share(mixture.conversation_styles, "check", conversations))
    if textbooks is not None:
        mixture = replace(mixture, textbook_styles=_with_share(mixture.textbook_styles, "check", textbooks))
    if textbooks == 0:
        mixture = replace(mixture, drill_kinds=_without(mixture.drill_kinds, "checks", "comparisons"))
    return replace(mixture, working=replace(mixture.working, corrections=corrections))


def _with_share(shares: Shares, name: str, share: float) -> Shares:
    """The shares with another one for a name; the others keep their proportions."""
    if not 0 <= share <= 1:
        raise ValueError(f"a share of checked solutions is {share}; it must be from 0 to 1")
    factor = (1 - share) / (1 - shares[name])
    return {key: share if key == name else own * factor for key, own in shares.items()}


def _without(shares: Shares, *names: str) -> Shares:
    """The shares without those of the names; the others keep their proportions."""
    others = {key: own for key, own in shares.items() if key not in names}
    return {key: own / sum(others.values()) for key, own in others.items()}
