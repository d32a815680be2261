import pytest

from verifiers.prose import hedges, plain, states


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        ("The answer is 42", "42"),
        ("The area of the triangle with base 3 is 12 cm", "12 cm"),
        ("Janet makes 18 dollars every day", "18"),
        ("Final answer: 42", "42"),
        ("12 is the answer", "12"),
        ("The answer is Evelyn", "Evelyn"),
        ("42", "42"),
        (r"\frac{1}{2}", r"\frac{1}{2}"),
        ("Evelyn Smith", "Evelyn Smith"),
        ("between 3 and 5 apples", "between 3 and 5 apples"),
    ],
)
def test_the_answer_of_a_sentence_is_read(sentence: str, answer: str) -> None:
    assert plain(sentence) == answer


def test_a_hedge_is_a_word_that_the_gold_does_not_use() -> None:
    assert hedges("not 42", "42") and hedges("Maybe 42", "42") and hedges("it might be 42", "42")
    assert not hedges("not possible", "not possible") and not hedges("42", "42")
    assert not hedges("nothing", "42")  # only whole words


def test_a_sentence_states_yes_no_or_the_winner() -> None:
    assert states("yes", "yes, such a set exists") and states("no", "no, it does not converge")
    assert states("alice", "alice wins") and states("the second player", "the second player has a winning strategy")
    for gold, sentence in [
        ("yes", "yes, but not always"),
        ("yes", "no, yes"),
        ("alice", "alice loses"),
        ("bob", "alice wins"),
    ]:
        assert not states(gold, sentence)
