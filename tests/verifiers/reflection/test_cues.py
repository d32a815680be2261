"""Reflection cues are detected in context, and the same words elsewhere are not."""

import json
import random
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fixtures.growth import grows_linearly
from verifiers.reflection.cues import LEXICON, cues

SHARED = Path(__file__).parents[4] / "shared/benchmarks"
DEEPSEEK = (
    "Wait, wait. Wait. That's an aha moment I can flag here. "
    "Let's reevaluate this step-by-step to identify if the correct sum can be ⋯"
)

WORK = "We add 3 and 4 and get 7. " * 10

FOUND = {
    "aha": [
        "Aha! The two terms cancel.", "Aha, 7 divides both.", "Eureka, the sum telescopes.",
        "Oh, now I see: the angle is 30.", "Now I see why the sign changes.", "Now I get it.",
        "x = 3. Now I understand the question.",
    ],
    "error": [
        "I made a mistake in the second line.", "I see my mistake now.", "I have made an arithmetic error.",
        "I’ve made a sign error.", "I think I made an error.", "I must have made a mistake.",
        "I found an error in line 2.", "I spotted my mistake.", "There is a mistake in my second line.",
        "My mistake, it is 12.", "I was wrong about the sign.", "I misread the question.", "I miscalculated 7*6.",
        "That's not right.", "That’s not correct.", "That isn't right.", "This is wrong.", "I think that is wrong.",
        "Hmm, that is incorrect.", "But that was a mistake.", "Wait, that's wrong.",
        "x is negative, but that's not possible.", "Oops, I dropped a minus.", "Scratch that.",
        "That can't be right, I made a mistake.",
    ],
    "backtrack": [
        "Let's start over.", "Let me redo this.", "Let me re-evaluate the sum.", "Let’s reanalyze the second case.",
        "I need to reconsider.", "Let's go back to the first equation.", "Let's go over the steps.",
        "On second thought, use 12.", "I should rethink this.", "Let me try again.", "Let me think again.",
        "We need to backtrack.", "Let us reexamine the case n = 2.", "Let me reassess.",
        "Let me revisit the second step.",
    ],
    "doubt": [
        "Wait, that is 12.", "But wait. 7*6 is 42.", "wait what", "Wait", "WAIT! It is 3.", "Wait... 7 is left.",
        "Wait — the sign.", "**Wait**, it is 3.", '"Wait, what?"', "- Wait, so 5?", "✅ Wait, no.", "No, wait, 12.",
        "Actually, wait a minute.", "Wait a second, it is even.", "So it is 5.\n\nWait... 7 is left.",
        "So 7*6 is 44 (wait, no, 42).", "5 + 5 = 11 - wait, no.", "5 + 5 = 11—wait, no.", "Hmm, is it 12?",
        "Hmmm. It may be 12.", "Hold on, there are 3 of them.", "Hang on a second.", "Not so fast!",
        "Something is off.", "Something seems wrong here.", "That can't be right.", "This cannot be correct.",
        "That doesn't seem right.", "That does not make any sense.", "It doesn't add up.",
        "Did I forget the last one?", "Am I missing something?",
    ],
    "verify": [
        "Let me check.", "Let me check again.", "Let me verify again.", "Let's double-check the sum.",
        "Let me recheck the sum.", "Let me quickly check it.", "I will check: 3 * 4 = 12.",
        "I’ll verify the result.", "We should double check that.", "Let us confirm it.", "Let me make sure.",
        "Let me recalculate.", "Let me see if this works.", "Check: 40 + 2 = 42.", "x = 3 (check: 3 + 4 = 7).",
        "Checking the answer: 3.", "To verify, add them.", "Just to be sure, 7*6=42.", "Double-checking: 12.",
        "Verifying: 12.", "Sanity check: it is even.",
    ],
    "alternative": [
        "Alternatively, factor it.", "Let me try another way.", "Let's try a different approach.",
        "Let me try something else.", "Another way to see it is by parity.", "Another approach: count the holes.",
        "A different approach would be induction.",
    ],
}  # fmt: skip

NOT_FOUND = [
    "The waiter brings 5 plates.", "The waiting room holds 12.", "Wait times are 5 minutes.",
    "Wait time: 5 minutes.", "He waits for 5 minutes.", "Tom must wait 5 minutes.", "They wait, and then leave.",
    "She waited.", '"Please wait for me" cried Tom.', "The error bound is 0.1.", "The standard error is 2.",
    "There is a 5% chance of error.", "There is an error of 5 cm.", "He made an error of 5 cm.",
    "He made a mistake on 3 of 20 questions.", "Students make mistakes.", "It was a mistake to sell the apples.",
    "It is wrong to assume that x = 0.", "For each answer that is wrong, he loses 1 point.",
    "The chance that it is wrong is 0.1.", "If it is wrong, he pays $5.", "The wrong key opens no door.",
    "She was wrong 3 times.", "It is not possible to travel on BD.",
    "This is not possible since the last two terms are used.", "A right triangle has legs 3 and 4.",
    "The answer is correct to 2 decimals.", "However, since x > 0, we take 3.", "But the second term is 5.",
    "He pays by check for $20.", "check for $20", "She writes a check for $5.", "The check was $50.",
    "Check-in is at 5.", "Check marks: 5.", "Checking accounts pay 2%.", "She double-checks her bag.",
    "He is to check 5 rooms.", "The verification code is 1234.", "They go back home.", "go back home",
    "Let us go back to school.", "Substituting back, x = 3.", "He tries again 3 times.",
    "A customer restarts the machine twice.", "Hold on to the rope.", "He holds on to 3 cards.",
    "A number that does not add up to 10 is left out.", "A factory that does not make shoes makes 5 hats.",
    "Now I see 5 birds.", "Now I sell 5 apples.", "The band Aha Tunes sold 5 records.", "A-ha sold 5 records.",
    "I have made 5 cakes.", "Another 5 apples remain.", "Another way station is 5 km on.",
    "An alternative is to sell 5.", "Actually 5 of them are red.", "Let x be the number.", "Let me compute 3*4.",
    "Let's see: 3*4=12.", "", "   \n\n",
]  # fmt: skip


@pytest.mark.parametrize("kind", FOUND)
def test_a_second_thought_is_one_span_of_its_kind(kind):
    texts = [*FOUND[kind], *(f"{WORK}\n{text} {WORK}" for text in FOUND[kind] if not text[-1].isalnum())]
    assert [text for text in texts if [cue.kind for cue in cues(text)] != [kind]] == []


def test_the_same_words_in_a_word_problem_are_not_cues():
    assert [text for text in NOT_FOUND if cues(text)] == []


def test_every_kind_has_its_table():
    assert list(FOUND) == list(LEXICON)


def test_the_published_trace_is_one_span_of_kind_aha():
    (cue,) = cues(DEEPSEEK)
    assert cue.kind == "aha"
    assert DEEPSEEK[cue.start : cue.end] == DEEPSEEK[: DEEPSEEK.index(" this step-by-step")]
    assert [each.kind for each in cues(f"So a = 5. {'We go on. ' * 30}\n\n{DEEPSEEK}", "What is the sum?")] == ["aha"]


# ------------------------------------------------------------------------------------------------ spans


@pytest.mark.parametrize(("between", "number"), [(60, 1), (110, 1), (130, 2), (1_000, 2)])
def test_adjacent_cues_are_one_span(between, number):
    text = f"Wait, no.{'.' * between} Let me check it."
    spans = cues(text)
    assert len(spans) == number
    assert spans[0].kind == "doubt" and (spans[0].start, spans[-1].end) == (0, text.index(" it."))


def test_a_place_that_keeps_cues_apart_makes_two_of_them():
    text = "Wait, 7*6=42. Wait, no."
    assert len(cues(text)) == 1
    assert [(cue.start, cue.end) for cue in cues(text, separators=(6,))] == [(0, 4), (14, 18)]
    assert len(cues(text, separators=(0, 18))) == 1


@pytest.mark.parametrize("weak", list(LEXICON))
@pytest.mark.parametrize("strong", list(LEXICON))
def test_the_strongest_kind_names_the_span_in_either_order(weak, strong):
    strong, weak = sorted((strong, weak), key=list(LEXICON).index)
    one, other = FOUND[strong][0], FOUND[weak][0]
    for text in (f"{one} {other}", f"{other} {one}"):
        assert {cue.kind for cue in cues(text)} == {strong}


@pytest.mark.parametrize(
    "before",
    ["x\r\n\r\n", "\x00. ", "👩‍👩‍👧 👍. ", "שלום עולם. \u200f", "\u202eabc\u202c. ", "İİ. ", "é\u0301. ", "﷽\n"],
)
def test_places_are_those_of_the_text(before):
    text = f"{before}Wait, no.{before * 60}That’s wrong.\r\n"
    assert [text[cue.start : cue.end] for cue in cues(text)] == ["Wait", "That’s wrong"]


PIECES = [
    *("Wait, ", "wait ", "Let me check", "That's wrong", "I made a mistake", "aha", "Hmm", "to verify", "but ", "so "),
    *("7*6=42", "\\boxed{", "}", "```", "\r\n", "\n", " ", ".", "...", "(", "’", "'", "*", "_", "\x00", "👍", "\u200f"),
]
PIECED = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=40).map("".join)
TEXTS = st.one_of(st.text(), PIECED)


@given(TEXTS, TEXTS, st.lists(st.integers(0, 200), max_size=5))
def test_spans_lie_in_any_text_in_order_and_apart(text, question, places):
    spans = cues(text, question, separators=tuple(places))
    assert all(0 <= cue.start < cue.end <= len(text) and cue.kind in LEXICON for cue in spans)
    assert all(text[cue.start].isalnum() and not text[cue.end - 1].isspace() for cue in spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))


# ------------------------------------------------------------------------------------------------ skipped


def test_code_holds_no_second_thoughts_and_those_after_it_count():
    assert cues("We run\n```python\n# Wait, that is wrong. Let me check.\nx = 1\n```\nand get 1.") == []
    assert cues("```\nWait, the block is not closed.") == []
    text = "```\nprint('wait, no')\n``` Wait, no."
    assert [text[cue.start :] for cue in cues(text)] == ["Wait, no."]


def test_words_of_the_question_are_not_the_models():
    question = 'Tom said: "Wait, I made a mistake when I counted the apples." How many apples are there?'
    assert cues(question) and cues(question, question) == []
    assert cues('He says "wait, I made a mistake when I counted the apples", so there are fewer.', question) == []
    assert cues("Wait, I made a mistake when I subtracted.", question), "seven words are no copy"
    assert cues("Wait, no.", "Wait, no.")
    (own,) = cues(f"{question} So there are 5. {'We go on. ' * 20}Wait, I forgot one.", question)
    assert own.kind == "doubt"


@pytest.mark.parametrize("unit", ["wait ", "Wait, ", "wait, wait. Wait! ", "Hmm, ", "Wait\n", "aha! "])
@pytest.mark.parametrize("number", [1, 2, 50, 5_000])
def test_a_repeated_word_is_one_cue(unit, number):
    assert len(cues(f"So 5. {unit * number}")) <= 1


@pytest.mark.parametrize("filler", [0, 10, 60, 200, 500])
@pytest.mark.parametrize("last", ["", "Wait", "Wait, that is", "Wait, that is wrong"])
def test_a_loop_is_one_second_thought_wherever_it_is_cut_off(filler, last):
    sentence = f"Wait, that is wrong because 7 is odd. {'We go on. ' * (filler // 10)}"
    assert len(cues(sentence * 50 + last)) == 1


def test_the_same_words_with_another_thought_after_them_are_another_cue():
    long = "We go on. " * 20
    assert len(cues(f"Wait, {long}Wait, it is even. {long}Wait, it is odd after all. {long}")) == 3


# ------------------------------------------------------------------------------------------------ hostile text

HOSTILE = [
    *("wait ", "Wait, ", "(", "\n", "\r\n", "let me ", " ", "...", ". ", ', "', "but ", "so,!. ", "hmm", "Hmm, "),
    *("I made a ", "that cannot be ", "that is wrong ", "```", "``` ", "* ", "—", "_", "\x00", "a", ".("),
]


@pytest.mark.slow
@pytest.mark.parametrize("unit", HOSTILE)
def test_time_grows_with_the_length_of_the_text(unit):
    assert grows_linearly(lambda text: cues(text, "How long does the waiter wait?"), unit)


def test_a_long_text_has_at_most_200_cues():
    rng = random.Random(0)
    text = " ".join(f"Wait, {rng.random()} is not it. {'We go on. ' * 20}" for _ in range(400))
    assert 100 <= len(cues(text)) <= 200


# ------------------------------------------------------------------------------------------------ human texts


def rows(name):
    path = SHARED / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"needs {path.name}")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize(
    ("name", "most"),  # measured: none of the 2,000; 6 of the 500
    [("gsm8k_train_2000", 0.001), ("math500", 0.016)],
)
def test_human_solutions_have_hardly_any_cues(name, most):
    """The cues in MATH-500 are real ones: four times "Alternatively,", "To verify this", "Checking,"."""
    solutions = [(re.sub(r"<<.*?>>", "", row["solution"]), row["question"]) for row in rows(name)]
    flagged = [text for text, question in solutions if cues(text, question)]
    assert len(flagged) <= most * len(solutions), flagged


@pytest.mark.parametrize("name", ["gsm8k_train_2000", "math_train_2000"])
def test_questions_contain_no_cues(name):
    """Measured: none in 4,000 questions."""
    questions = [row["question"] for row in rows(name)]
    flagged = [question for question in questions if cues(question)]
    assert len(flagged) <= 0.001 * len(questions), flagged
