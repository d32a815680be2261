r"""The value that a sentence states: behind its last "=", its last verb of being or a colon, or its only value.

A sentence with a word of doubt, denial or choice, a question or two candidates states none.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_TEXT = re.compile(r"\\(?:text|mbox|textbf)\s*\{([^{}]*)\}")
_FORMULA = re.compile(
    r"(?<!\\)(?:\$\$?(\s*)[^$\s](?:[^$]*[^$\s])?\1\$\$?(?!\d)|\\\(.+?\\\)|\\\[.+?\\\])", re.DOTALL
)  # not "$5 and $6"
_AFTERWORD = re.compile(
    r"(?<!\.)\.$|\s(?:because|since)\b[^,]*$|\s(?:is|are) (?:the|our|my) (?:only|answer|smallest|largest|least|greatest"
    r"|minimum|maximum|required|desired|correct|final)\b[^\d=]*$"
)
_WORD = re.compile(
    r"(?<![\\\w{^_])(?!(?:log|ln|sin|cos|tan|mod|max|min|gcd|lcm|sqrt|pi)\b)"
    r"(?:[A-Za-z][a-z'’-]*[a-z]|[aI](?=\s+[A-Za-z]{2}))(?![\w}(])(?:['’]s)?"
)
_CLAUSE = re.compile(
    r"[.!]\s|\n|⇒|\\(?:Rightarrow|implies|therefore)"
    r"|(?:^|[\s,])(?:so|thus|hence|therefore|then|giving|because|since|we (?:get|have|find))\b",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"(?:\b(?:is|are|was|were|be|equals?|it['’]s)\b|(?<!\d):(?=[\s\d$\\(-]))"
    r"(?:\s*:|\s+(?:equal to|a total of|exactly|precisely|just|only|also|now|(?-i:an?)|the)\b)*[\s,]*",
    re.IGNORECASE,
)


def _words(words: str) -> str:
    """A pattern for any of some words; "_" joins those of a phrase."""
    return rf"(?<![\\{{])\b(?:{'|'.join(words.split()).replace('_', ' ')})\b"


_DOUBT = re.compile(
    r"\?|≈|\\approx|~|n['’]t\b|\b[ie]\.?[eg]\b|given\W*\d|"
    + _words(
        "not? never none nobody nor n?either cannot except unless if whether where but however otherwise instead "
        "rather without maybe perhaps possibly probably (?:un)?likely usually sometimes seems? should would could "
        "might may let says? said try guess\\w* think\\w* thought believe\\w* suppos\\w+ assum\\w+ claim(?:s|ed) "
        "expect\\w* estimat\\w* unsure doubt\\w* unknown wrong error incorrect false impossible mistake naive "
        "ignor\\w+ exclud\\w+ reject\\w* discard\\w* ruled? contradict\\w* fail\\w* almost nearly about around "
        "approx\\w* circa roughly near close hint example cases? bounds? previous old former (?:an)?other "
        "candidates? given_that that_is up_to until then_some at_(?:least|most|first) or_(?:so|more|less) "
        "(?:one|first|second|third)_(?:possible|solution|root|of)"
    ),
    re.IGNORECASE,
)
_CHANGE = re.compile(  # beside a value: another one is stated
    _words(
        "or plus minus times than as less fewer over under above below between before after squared? cubed? doubled? "
        "twice tripled halved hal(?:f|ves) thirds? quarters? fourths? fifths? dozens? hundreds? thousands? millions? "
        "billions? squares cubes powers? roots? multiples? factors? factorial divid\\w+ divisible mod modulo short off "
        "negative floor inverse reciprocal opposite raised reversed remains? differs fold sided too onwards? on$ sum "
        "difference product"
    ),
    re.IGNORECASE,
)
_LEADS = re.compile(
    "(?:"
    + _words(
        "the (?-i:an?)(?=_[\\w$\\\\]) all final correct answers? ans\\.? results? solutions? roots? total values? "
        "functions? points? vertex cent(?:er|re) pairs? triples? exactly precisely only is are in we get it my our and "
        "so thus hence therefore"
    )
    + r"(?=[\s:,]|$)|\\(?:Rightarrow|implies|therefore)\b|[\s,:])*",
    re.IGNORECASE,
)
_RESTRICTION = re.compile(_words("integers? primes? natural rational even odd positive"), re.IGNORECASE)
_BOUND = re.compile(r"[<>≤≥]|\\[lg]eq?(?:slant)?(?![a-z])")
_NOTHING = re.compile(r"(?:there (?:is|are)|(?:the|this) \w+ has) (no [a-z ]+)", re.IGNORECASE)
_WORKED_OUT = re.compile(r"[-+*/x×÷–]|\\(?:times|div|cdot)|^\W*$")  # in front of "=": 12 + 3
_UNKNOWN = re.compile(r"(?<![\\A-Za-z])(?!x\s+[\d$])[A-Za-z](?![a-z])")
_UNSOLVED = re.compile(r"(?:\d|[-+*/^]\s*)[a-zA-Z]\b|\b[a-zA-Z]\s*[-+*/^]")  # 2x, x^2
_MAX_WORDS = 100  # characters of a value in words
_OWN = re.compile(r"\b(?:its|it|answer|result|[b-hj-z])\b", re.IGNORECASE)


def has_doubt(text: str) -> bool:
    """Whether a text doubts, denies or asks."""
    return _DOUBT.search(text) is not None


def changes_answer(text: str) -> bool:
    """Whether a word beside a value makes another one of it: "less", "squared"."""
    return _CHANGE.search(text) is not None


def stated_value(text: str, is_value: Callable[[str], bool]) -> str | None:
    """The part of a text that is the value it states; None where it states none, or not one alone.

    `is_value`: whether a text is a value as it stands.
    """
    formulas = list(_FORMULA.finditer(text))
    text = _FORMULA.sub(_content, _TEXT.sub(r" \1 ", text)).strip()
    if value := _behind_leads(text, is_value):
        return value
    if (nothing := _NOTHING.fullmatch(text.rstrip("."))) and is_value(nothing[1]):
        return nothing[1]
    if has_doubt(text):
        return None
    if len(formulas) == 1 and _is_alone(formulas[0]):
        return _content(formulas[0])
    clause = _CLAUSE.split(_AFTERWORD.sub("", text))[-1].strip(" ,")
    verbs = [verb for verb in _VERB.finditer(clause) if _starts_value(clause, verb.end(), is_value)]
    num_equations = sum("=" in part for part in _WORD.split(clause))
    if len(verbs) > 1 or num_equations > 1:
        return clause if is_value(clause) else None  # m = 5 and n = 12
    if num_equations:
        start = _start_of_equation(clause, verbs[0].end() if verbs else -1)
    elif verbs:
        start = verbs[0].end() if _is_subject(clause[: verbs[0].start()], verbs[0][0]) else -1
    else:
        return clause if is_value(clause) else _behind_leads(clause, is_value)
    return _value_at(clause, start, is_value) if start >= 0 else None


def _content(formula: re.Match[str]) -> str:
    return (formula[0].strip("$") if formula[0].startswith("$") else formula[0][2:-2]).strip()


def _is_alone(formula: re.Match[str]) -> bool:
    """Whether the only formula of a sentence is at its end, or in front of "is", with words alone around it."""
    before, after = formula.string[: formula.start()], formula.string[formula.end() :]
    is_end = re.match(r"[\s.!]*$|\s*(?:is|are)\b", after) is not None
    is_range = _RESTRICTION.search(before) and _BOUND.search(formula[0])
    return is_end and not (is_range or re.search(r"[\d\\=<>^+*/]", before + after) or changes_answer(before + after))


def _behind_leads(text: str, is_value: Callable[[str], bool]) -> str | None:
    """The value that has only words in front that lead to it; None for another text."""
    lead = _LEADS.match(text)
    rest = re.sub(r"(?<!\.)\.$", "", text[lead.end() :] if lead else "")
    return rest if lead and lead[0].strip() and is_value(rest) else None


def _starts_value(clause: str, start: int, is_value: Callable[[str], bool]) -> bool:
    """Whether a value begins here: no word, or words that are one ("twelve")."""
    is_short = start < len(clause) <= start + _MAX_WORDS
    return start < len(clause) and (not _WORD.match(clause, start) or (is_short and is_value(clause[start:])))


def _start_of_equation(clause: str, stated: int) -> int:
    """Where the value behind the last "=" starts, or its name in front of it; -1 for an equation that states none."""
    equals = clause.rindex("=")
    start = max((word.end() for word in _WORD.finditer(clause) if word.end() <= equals), default=0)
    left, subject = clause[start:equals].strip(" ,:"), clause[:start]
    has_unknown = _UNKNOWN.search(left)
    between = subject[stated:].strip() if stated >= 0 else ""
    if between and (has_unknown or not re.search(r"\s[-+*/x×÷–]\s", clause[stated:equals])):  # 2, attained at x = 3
        return -1
    if not left and not re.search(r"\d", subject) and changes_answer(subject):  # its square = 9
        return -1
    return equals + 1 if _WORKED_OUT.search(left) and not has_unknown else start


def _is_subject(subject: str, verb: str) -> bool:
    """Whether a value behind this subject is the answer: not of "its square" or "2x", and not of any label."""
    if verb.startswith(":"):
        return _LEADS.fullmatch(subject) is not None
    is_made_of_it = _OWN.search(subject) and changes_answer(subject)
    return not is_made_of_it and (" of " in subject or not _UNSOLVED.search(subject))


def _value_at(clause: str, start: int, is_value: Callable[[str], bool]) -> str | None:
    """The value that begins here: the rest of the clause, or its first part if the words behind do not change it."""
    rest = clause[start:].strip(" ,:")
    if is_value(rest):
        return rest
    word = _WORD.search(rest)
    value, behind = (rest[: word.start()].strip(" ,"), rest[word.start() :]) if word else (rest, "")
    is_changed = re.search(r"\d|\b(?:is|are|was|were)\b|^(?:of|and|or)\b", behind) or changes_answer(behind)
    return value if value and not is_changed and is_value(value) else None
