"""Answers stated in sentences; sentences that hedge, deny or list several candidates are detected."""

from __future__ import annotations

import re

from verifiers.number_words import changes_value, is_part_of_amount

_HEDGES = (
    "not", "neither", "nor", "maybe", "perhaps", "possibly", "probably", "either", "guess", "unsure", "unknown",
    "think", "could", "might", "cannot", "can't", "isn't", "unless", "depends", "wrong", "incorrect", "about", "around",
    "roughly", "approximately", "but", "false", "never", "untrue", "none of",
)  # fmt: skip
_HEDGE = re.compile(rf"\b(?:{'|'.join(_HEDGES)})\b", re.IGNORECASE)
_COMMAND = re.compile(r"\\(?:text\b|[a-zA-Z]+)")
_WORD = re.compile(r"[A-Za-z]{2,}")
# Words that precede the answer; the last match counts.
_LEAD = re.compile(
    r"\b(?:is|are|equals|be|was|get|gives)\b\s*:?\s*|(?:\banswer|\bresult|\bsolution)\s*[:=]\s*", re.IGNORECASE
)
_LABEL = re.compile(r"^#{2,}\s*|^(?:the )?(?:final )?(?:answer|result|solution)\s*[:=]\s*(?=\S)", re.IGNORECASE)
_LONGEST_UNIT = 4  # words that may follow a number and belong to it
# Next to one of these words a number is not the stated answer but something that the answer is compared with.
_RELATIVE = re.compile(
    r"\b(?:or|and|plus|minus|times|over|divided|less|more|least|most|fewer|greater|smaller|larger|than|after|before|between"
    r"|beyond|above|below|under|up to|out of|in base|until|within|exceeds?|except|twice|half|halved|doubled?|tripled?"
    r"|squared?|cubed?|roots?|factorial"
    r"|powers?|to the \w+th|opposite|negation|negative|inverse|reciprocal|sum|difference|product|quotient|anything"
    r"|divides?|divisible|divisors?|equation|lemma|step|numerator|denominator|prime|composite|too|bounds?|digits?"
    r"|none of|of (?:them|these|those)|infinitely|one of|\d+(?:st|nd|rd|th)|\d+-digit|something|options?|candidates?"
    r"|ignore|accept|close|near|nearly|almost|next|previous|multiples?|factors?)\b",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"(?<=[A-Za-z_\d])(?<!\bis)(?<!\bbe)\(['\"]?-?\d+(?:\.\d+)?['\"]?\)|;|\\[A-Za-z]+\{[a-z]+\."
)  # a call or a statement of a program, not a sentence
_NUMBER = re.compile(r"(?<![\w.])-?(?:\\dollar\s?)?\d[\d,]*(?:\.\d+)?%?")


# One formula between maths delimiters.
_FORMULA = re.compile(
    r"(?<!\\)\$\$([^$]+)\$\$|(?<!\\)\$([^$]+)(?<!\\)\$|(?<!\\)\\\[(.+?)(?<!\\)\\\]|(?<!\\)\\\((.+?)(?<!\\)\\\)",
    re.DOTALL,
)
_CALCULATION = re.compile(r"[\d\\=<>^+*/]")
_AFTERWORD = re.compile(r"[.\s]*\bI hope (?:it|this) is correct[.\s]*$", re.IGNORECASE)


def formula(text: str) -> str:
    """The only formula of a sentence with words alone around it ("Thus $x<3$."); otherwise the text unchanged."""
    if "hope" in text:
        text = _AFTERWORD.sub("", text)
    matches = list(_FORMULA.finditer(text)) if "$" in text or "\\" in text else []
    if len(matches) != 1:
        return text
    before, after = text[: matches[0].start()], text[matches[0].end() :]
    is_sentence = _WORD.search(before) and re.match(r"[\s.!]*$|\s+(?:is|are)\b", after)
    around = f"{before} {after}"
    if not is_sentence or any(sign.search(around) for sign in (_CALCULATION, _HEDGE, _RELATIVE)):
        return text
    return str(next(filter(None, matches[0].groups())))


def words(text: str) -> list[str]:
    """The words of two or more letters outside LaTeX commands, including those inside `\\text{}`."""
    return _WORD.findall(_COMMAND.sub(" ", text))


_WINS = re.compile(r" (?:wins(?: the game)?|has (?:a|the) winning strategy|will (?:always )?win|can always win)[.!]?")
_OPPOSITE = {"yes": "no", "no": "yes", "true": "false", "false": "true"}


def states(gold: str, answer: str) -> bool:
    """Whether a sentence begins with the gold word and its comma ("Yes, it is."), or says that the gold wins.

    Both are comparison keys. "Yes, but not always" and "Yes or no" do not state the gold.
    """
    if gold in _OPPOSITE:
        first, _, rest = answer.partition(",")
        others = {word.casefold() for word in _WORD.findall(rest)}
        return first.strip() == gold and others.isdisjoint({_OPPOSITE[gold], "but", "unless", "except", "or", "maybe"})
    return bool(_WORD.search(gold)) and answer.startswith(gold) and bool(_WINS.fullmatch(answer[len(gold) :]))


def hedges(text: str, gold: str) -> bool:
    """Whether the answer has a word of denial, doubt or qualification that the gold does not use."""
    return any(hedge.casefold() not in gold.casefold() for hedge in _HEDGE.findall(text))


def plain(text: str) -> str:
    """The answer that a sentence states: the text after its last "is", else its only number, else the whole text."""
    text = _LABEL.sub("", text)
    if len(words(text)) < 2 or _CODE.search(text):
        return text
    lead = next(reversed(list(_LEAD.finditer(text))), None)
    if lead and text[lead.end() :].strip(" .}"):
        after = text[lead.end() :].strip()
        if not re.search(r"\d|\\", after) and re.search(r"\d", text):
            return text if _RELATIVE.search(after) else text[: lead.start()].strip()
        text = after
        if len(words(text)) <= _LONGEST_UNIT:
            return text
    numbers = list(_NUMBER.finditer(text))
    if len(numbers) != 1 or _RELATIVE.search(text) or is_part_of_amount(text[numbers[0].end() :]):
        return text
    if numbers[0].start() == 0 and changes_value(" ".join(text[numbers[0].end() :].split()[:3])):
        return text
    return numbers[0][0].rstrip(",")
