"""The text of an answer in what a model writes: the last box, or the value that a sentence states, without markup.

A sentence states the value behind its last "=", its last verb of being or a colon, or its only value; with a word of
doubt, denial or choice, a question or two candidates it states none.
"""

from __future__ import annotations

import re
from decimal import Decimal
from numbers import Real

from data.boxes import final_boxes
from verifiers.answers.layer import read
from verifiers.answers.scalars import contradicts
from verifiers.answers.words import any_of, changes_answer, has_doubt
from verifiers.normalise import visible

# One formula between maths delimiters, text in bold, and what some solutions end with.
_FORMULA = re.compile(
    r"(?<!\\)\$\$([^$]+)\$\$|(?<!\\)\$([^$]+)(?<!\\)\$|(?<!\\)\\\[(.+?)(?<!\\)\\\]|(?<!\\)\\\((.+?)(?<!\\)\\\)",
    re.DOTALL,
)
_BOLD = re.compile(r"(?<![\w)}*])\*\*([^*\n]+)\*\*(?![\w({*])")
_TAG = re.compile(r"<(b|strong|i|em|u|mark)>([^<>]*)</\1>\.?", re.IGNORECASE)  # HTML
_HOPE = re.compile(r"[.\s]*\bI hope (?:it|this) is correct[.\s]*$", re.IGNORECASE)
_STRUCK = re.compile(r"(?<![^\s(\[{*_])~~(?=[^\s~])[^~\n]*(?<=\S)~~(?![^\s.,;:!?)\]}*_])")  # in Markdown: ~~withdrawn~~
# The line of a longer text that gives the answer.
_ANSWER_LINE = re.compile(r"\n[ \t*_#]*(?:the )?final answer[ \t*_]*:[ \t*_\n]*(?=\S)", re.IGNORECASE)
_MARK = re.compile(r"^[ \t]*(?:(\d{1,2})\.|(\d{1,2})\)|\((\d{1,2})\)|([-*•–]))[ \t]+(?=\S)", re.MULTILINE)  # of a list
_MAX_SENTENCE = 1_000  # characters
_NO_WORDS = re.compile(r"[\W\d_]*")  # what states no value in a sentence, but may be one
_FENCES = ("**", "__", "``", "`", "*", "_", '"', "'")

# The value that a sentence states.
_TEXT = re.compile(r"\\(?:text|mbox|textbf)\s*\{([^{}]*)\}")
_DELIMITED = re.compile(
    r"(?<!\\)(?:\$\$?(\s*)[^$\s](?:[^$]*[^$\s])?\1\$\$?(?!\d)|\\\(.+?\\\)|\\\[.+?\\\])", re.DOTALL
)  # not "$5 and $6"
_AFTERWORD = re.compile(
    r"(?<!\.)\.$|\s(?:because|since)\b[^,]*$|\s(?:is|are) (?:the|our|my) (?:only|answer|smallest|largest|least|greatest"
    r"|minimum|maximum|required|desired|correct|final)\b(?:(?!\bor\b)[^\d=,A-Z])*$"
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


_LEADS = re.compile(
    "(?:"
    + any_of(
        "the (?-i:an?)(?=_[\\w$\\\\]) all final correct answers? ans\\.? results? solutions? roots? total values? "
        "functions? points? vertex cent(?:er|re) pairs? triples? exactly precisely only is are in we get it my our and "
        "so thus hence therefore"
    )
    + r"(?=[\s:,]|$)|\\(?:Rightarrow|implies|therefore)\b|[\s,:])*",
    re.IGNORECASE,
)
_RESTRICTION = re.compile(any_of("integers? primes? natural rational even odd positive"), re.IGNORECASE)
_BOUND = re.compile(r"[<>≤≥]|\\[lg]eq?(?:slant)?(?![a-z])")
_NOTHING = re.compile(r"(?:there (?:is|are)|(?:the|this) \w+ has) (no [a-z ]+)", re.IGNORECASE)
_WORKED_OUT = re.compile(r"[-+*/x×÷–]|\\(?:times|div|cdot)|^\W*$")  # in front of "=": 12 + 3
_UNKNOWN = re.compile(r"(?<![\\A-Za-z])(?!x\s+[\d$])[A-Za-z](?![a-z])")
_UNSOLVED = re.compile(r"(?:\d|[-+*/^]\s*)[a-zA-Z]\b|\b[a-zA-Z]\s*[-+*/^]")  # 2x, x^2
_MAX_WORDS = 100  # characters of a value in words
_OWN = re.compile(r"\b(?:its|it|answer|result|[b-hj-z])\b", re.IGNORECASE)


def as_text(name: str, value: object) -> str:
    """A text unchanged, and a number as it is written; ValueError with the name for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise ValueError(f"the {name} is {value!r}; it must be a text or a number")
    return str(value)


def texts_of(text: str) -> tuple[str, str]:
    """The whole answer and the part of it that states the value, both without markup.

    They are the same where the grammar reads the whole, and where it states no value.
    """
    box = final_boxes(text := visible(text))
    whole = _without_markup(text if box is None else box)
    is_sentence = len(whole) <= _MAX_SENTENCE and not (_NO_WORDS.fullmatch(whole) or _is_value(whole))
    return whole, (stated_value(whole) if is_sentence else None) or whole


def _is_value(text: str) -> bool:
    return read(text) is not None


def answer_part(text: str) -> str:
    """The content of the last box, or the text; of a sentence the value that it states. Without markup."""
    return texts_of(text)[1]


def _without_markup(text: str) -> str:
    """The text without headings, bold and code marks, and without what is struck through."""
    if "~~" in text:
        text = _STRUCK.sub("", text)
    if "hope" in text:
        text = _HOPE.sub("", text)
    text = text.strip().rstrip("\\").strip()
    if "\n" in text and (lines := list(_ANSWER_LINE.finditer(text))):
        text = text[lines[-1].end() :]
    if " " in text or "\t" in text:
        text = _without_list_marks(text)
    for fence in _FENCES if text[:1] in "*_`#\"'" else ():
        marks = len(text) - len(text.lstrip("#"))
        text = text[marks:].strip() if marks > 1 or text[1:2] == " " else text  # a heading, but not "#7"
        if text.startswith(fence) and text.endswith(fence) and len(text) > 2 * len(fence):
            text = text[len(fence) : -len(fence)].strip()
    if (tag := _TAG.fullmatch(text)) is not None:
        text = tag[2].strip()
    return _BOLD.sub(r"\1", text) if "**" in text else text


def formulas_in(text: str) -> tuple[str, ...]:
    """The formulas of a text, between maths delimiters."""
    return tuple(dict.fromkeys(next(filter(None, match.groups())).strip() for match in _FORMULA.finditer(text)))


def _without_list_marks(text: str) -> str:
    """The text without numbers from 1 on, and without two or more equal dashes or dots, at the begin of its lines."""
    marks = list(_MARK.finditer(text))
    signs = [match[4] for match in marks if match[4]]
    numbers = [int(match[match.lastindex or 0]) for match in marks if not match[4]]
    is_listed = numbers == list(range(1, len(numbers) + 1)) and (len(signs) != 1 and len(set(signs)) < 2)
    return _MARK.sub("", text) if marks and is_listed else text


# ------------------------------------------------------------------------------------ the value of a sentence


def stated_value(text: str) -> str | None:
    """The part of a text that is the value it states; None where it states none, or not one alone."""
    formulas = list(_DELIMITED.finditer(text))
    text = _DELIMITED.sub(_content, _TEXT.sub(r" \1 ", text)).strip()
    if value := _behind_leads(text):
        return value
    if (nothing := _NOTHING.fullmatch(text.rstrip("."))) and _is_value(nothing[1]):
        return nothing[1]
    if has_doubt(text):
        return None
    if len(formulas) == 1 and _is_alone(formulas[0]):
        return _content(formulas[0])
    clause = _CLAUSE.split(_AFTERWORD.sub("", text))[-1].strip(" ,")
    verbs = [verb for verb in _VERB.finditer(clause) if _starts_value(clause, verb.end())]
    num_equations = sum("=" in part for part in _WORD.split(clause))
    if len(verbs) > 1 or num_equations > 1:
        return clause if _is_value(clause) else None  # m = 5 and n = 12
    if num_equations:
        start = _start_of_equation(clause, verbs[0].end() if verbs else -1)
    elif verbs:
        start = verbs[0].end() if _is_subject(clause[: verbs[0].start()], verbs[0][0]) else -1
    else:
        return clause if _is_value(clause) else _behind_leads(clause)
    return _value_at(clause, start) if start >= 0 else None


def _content(formula: re.Match[str]) -> str:
    return (formula[0].strip("$") if formula[0].startswith("$") else formula[0][2:-2]).strip()


def _is_alone(formula: re.Match[str]) -> bool:
    """Whether the only formula of a sentence is at its end, or in front of "is", with words alone around it."""
    before, after = formula.string[: formula.start()], formula.string[formula.end() :]
    is_end = re.match(r"[\s.!]*$|\s*(?:is|are)\b", after) is not None
    is_range = _RESTRICTION.search(before) and _BOUND.search(formula[0])
    return is_end and not (is_range or re.search(r"[\d\\=<>^+*/]", before + after) or changes_answer(before + after))


def _behind_leads(text: str) -> str | None:
    """The value that has only words in front that lead to it; None for another text."""
    lead = _LEADS.match(text)
    rest = re.sub(r"(?<!\.)\.$", "", text[lead.end() :] if lead else "")
    return rest if lead and lead[0].strip() and _is_value(rest) else None


def _starts_value(clause: str, start: int) -> bool:
    """Whether a value begins here: no word, or words that are one ("twelve")."""
    is_short = start < len(clause) <= start + _MAX_WORDS
    return start < len(clause) and (not _WORD.match(clause, start) or (is_short and _is_value(clause[start:])))


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
    sides = [read(each) for each in (clause[max(stated, 0) : equals], clause[equals + 1 :])]
    if sides[0] and sides[1] and contradicts(sides[0], sides[1]):  # 7 cm = 5 cm
        return -1
    return equals + 1 if _WORKED_OUT.search(left) and not has_unknown else start


def _is_subject(subject: str, verb: str) -> bool:
    """Whether a value behind this subject is the answer: not of "its square" or "2x", and not of any label."""
    if verb.startswith(":"):
        return _LEADS.fullmatch(subject) is not None
    is_made_of_it = _OWN.search(subject) and changes_answer(subject)
    return not is_made_of_it and (" of " in subject or not _UNSOLVED.search(subject))


def _value_at(clause: str, start: int) -> str | None:
    """The value that begins here: the rest of the clause, or its first part if the words behind do not change it."""
    rest = clause[start:].strip(" ,:")
    if _is_value(rest):
        return rest
    word = _WORD.search(rest)
    value, behind = (rest[: word.start()].strip(" ,"), rest[word.start() :]) if word else (rest, "")
    is_changed = re.search(r"\d|\b(?:is|are|was|were)\b|^(?:of|and|or)\b", behind) or changes_answer(behind)
    return value if value and not is_changed and _is_value(value) else None
