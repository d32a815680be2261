"""The corpus: clean of every other split's calculations in every form, and written as the styles say."""

import re
from random import Random

import pytest

from data.arithmetic import equation
from data.families import FAMILIES, LEVELS
from data.generated import problems
from data.splits import split_of_step
from reasoner.pretrain.corpus import _DRILLS, TAGGINGS, calculations_in, document, is_clean
from reasoner.pretrain.mixture import MIXTURES, with_checks
from reasoner.pretrain.solutions import CARELESS, STYLES, Working, claim_with_check, slip
from verifiers import grade

DOCUMENTS = 6000


@pytest.fixture(scope="module")
def documents() -> list[str]:
    return [document(0, index) for index in range(DOCUMENTS)]


def test_a_document_is_a_function_of_seed_and_index(documents):
    assert document(0, 17) == documents[17]
    assert document(1, 17) != documents[17]


def test_no_document_states_a_calculation_of_another_split_in_any_form(documents):
    # Read here with a reader of its own: every "a op b" in the text, whether an "=" follows or not.
    for text in documents:
        thought = text.split("Assistant:")[-1] if "Assistant:" in text else text
        for left, op, right in re.findall(r"(\d+)([+\-*/])(\d+)(?=[=:])", thought):
            a, b = int(left), int(right)
            if (op == "-" and a < b) or (op == "/" and a % b):
                continue
            assert split_of_step(equation(a, op, b)) == "corpus", text


@pytest.mark.slow  # no calculation of one is stated: above
def test_no_held_out_question_stands_in_the_corpus(documents):
    questions = {p.question for split in ("heldout", "validation", "train") for p in problems(split)}
    whole, shortest = "\n".join(documents), min(map(len, questions))
    ends = {whole[end.end() - shortest : end.end()] for end in re.finditer(r"[.?]", whole)}
    assert {question[-1] for question in questions} == {".", "?"}  # so that no other end is looked for
    assert not [q for q in questions if q[-shortest:] in ends and q in whole]


def test_a_stated_step_of_another_split_is_noticed_in_every_form():
    steps = (equation(a, "*", b) for a in range(101, 999) for b in range(3, 10))
    step = next(step for step in steps if split_of_step(step) == "heldout")
    a, b, value = step.left, step.right, step.value
    for form in (f"{a}*{b}={value}", f"{b}*{a}={value + 1}", f"{value}/{b}={a}", f"{value}/{a}={b}"):
        assert not is_clean(f"Check: 1+1=2, {form}.")
    assert [str(step) for step in calculations_in(f"{b}*{a}={value + 1}")] == [f"{b}*{a}={value}"]


def test_shares_add_up():
    changed = [with_checks(mixture, conversations=0.4, textbooks=0.0) for mixture in MIXTURES.values()]
    for mixture in (*MIXTURES.values(), *changed):
        styles = (mixture.conversation_styles, mixture.textbook_styles)
        for shares in (*styles, mixture.families, mixture.drill_kinds, TAGGINGS):
            assert abs(sum(shares.values()) - 1) < 1e-9
        assert all(set(shares) == set(STYLES) for shares in styles)
        assert set(mixture.drill_kinds) <= set(_DRILLS)


def documents_of(mixture, number=1500):
    return [document(0, index, mixture) for index in range(number)]


def test_the_digits_mixture_states_no_calculation_of_another_split_and_subtracts_one_digit_at_a_time():
    texts = documents_of(MIXTURES["digits"])
    assert all(map(is_clean, texts))
    calculations = [text for text in texts if "ake " not in text]  # no countdown
    checks = [check for text in calculations for check in re.findall(r"Check: ([^.]*)\.", text)]
    amounts = [b for check in checks for b in re.findall(r"\d+-(\d+)=(?!\d+-)", check)]
    assert len(amounts) > 300
    assert not [b for b in amounts if len(b.rstrip("0")) > 1]


def test_without_checks_in_textbooks_there_are_none_and_without_corrections_none_finds_an_error():
    none = with_checks(MIXTURES["places"], conversations=0.0, textbooks=0.0)
    assert not [text for text in documents_of(none) if "Check:" in text or "I had" in text]
    texts = "\n".join(documents_of(with_checks(MIXTURES["digits"], corrections=False)))
    assert texts.count("Good,") > 500
    assert "Wait" not in texts


@pytest.mark.parametrize(("slips", "random"), [(0.4, 0.0), (0.7, 0.0), (0.4, 0.5), (0.7, 0.5)])
def test_first_values_of_divisions_are_as_often_wrong_as_the_settings_say_and_their_checks_are_right(slips, random):
    rng, step = Random(0), equation(434, "/", 7)
    working = Working(one_digit=True, quotient_slips=slips, random_quotients=random)
    texts = [claim_with_check(step, rng, working)[0] for _ in range(2000)]
    claims = [int(re.match(r"434/7=(\d+)\.", text)[1]) for text in texts]
    assert all("Check: 7*60=420, 434-420=34-20=14, 7*2=14, 60+2=62." in text for text in texts)
    assert slips - 0.05 < sum(claim != 62 for claim in claims) / len(claims) < slips + 0.03
    # A slip changes one digit; a random number of two digits differs in both 8 / 9 x 9 / 10 of the time.
    both = sum(str(claim)[0] != "6" and str(claim)[-1] != "2" for claim in claims) / len(claims)
    assert both == 0 if random == 0 else abs(both - slips * random * 0.8) < 0.03


def test_only_divisions_have_random_first_values():
    step = equation(62, "*", 7)
    cases = ((Random(0), Working()), (Random(0), Working(quotient_slips=0.7, random_quotients=0.5)))
    plain, other = ([claim_with_check(step, rng, working)[0] for _ in range(200)] for rng, working in cases)
    assert other == plain


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_a_share_of_checks_outside_0_to_1_is_refused(share):
    with pytest.raises(ValueError, match=f"is {share}; it must be from 0 to 1"):
        with_checks(MIXTURES["places"], conversations=share)


def test_checked_solutions_answer_right_and_guesses_mostly_do_not():
    rng = Random(0)
    right = dict.fromkeys(STYLES, 0)
    for _ in range(400):
        draft = FAMILIES[rng.choice(["sums", "products", "equations", "words", "countdown"])](rng.choice(LEVELS), rng)
        rule = "countdown" if draft.numbers else "maths"
        for style, write in STYLES.items():
            right[style] += grade(write(draft, rng, Working())[1], draft.answer, rule).verdict == "correct"
    assert 400 * (1 - CARELESS) < right["check"] < 400  # all but those of careless checks
    assert right["guess"] < 60
    assert right["quick"] < right["steps"] + 60 < 400


def test_a_slip_in_a_checked_step_is_corrected_and_the_corrected_value_is_used():
    rng = Random(3)
    step = equation(347, "*", 6)
    for _ in range(200):
        text, final = claim_with_check(step, rng, Working())
        had = re.match(r"347\*6=(\d+)\. Check: 300\*6=1800", text).group(1)
        reread = text.rpartition("I had ")[2]
        if had == "2082":
            assert reread == "2082. Good, 2082."
        else:
            assert reread.endswith("... Wait, 347*6=2082.")
            length = len(shared := reread.partition("...")[0])
            assert had[:length] == "2082"[:length] == shared and had[: length + 1] != "2082"[: length + 1]
        assert final == 2082


def test_a_careless_check_keeps_the_wrong_value_for_later_steps():
    rng = Random(4)
    step = equation(347, "*", 6)
    texts = {claim_with_check(step, rng, Working(), careless=1.0) for _ in range(50)}
    assert all(text.endswith(f"I had {final}. Good, {final}.") for text, final in texts)
    assert len({final for _, final in texts}) > 5
    draft = next(d for d in (FAMILIES["words"](2, rng) for _ in range(100)) if d.steps[1].op == "+")
    for _ in range(300):
        thought, answer = STYLES["check"](draft, rng, Working())
        waved = re.findall(r"Good, (\d+)\.", thought)
        if waved and int(waved[0]) != draft.steps[0].value and f" {waved[0]}+" in thought:
            assert answer != draft.answer
            break
    else:
        pytest.fail("no careless check in 300")


def test_a_slip_is_another_positive_number():
    rng = Random(5)
    assert all((wrong := slip(value, rng)) != value and wrong > 0 for value in range(1, 3000))


def test_gold_answers_of_generated_problems_grade_as_correct_against_themselves():
    for problem in problems("heldout", 150) + problems("train", 150):
        assert grade(problem.answer, problem.answer, problem.verifier).verdict == "correct"
