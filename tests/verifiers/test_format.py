import pytest

from verifiers.format import blocks

GOOD = "<think>2+2 is 4</think> <answer>4</answer>"


@pytest.mark.parametrize("response", [GOOD, f"\n {GOOD}\n", "<think>\na\n</think>\n\n<answer>\n4\n</answer>"])
def test_the_strict_form_is_well_formed(response: str) -> None:
    assert blocks(response).fault == ""


def test_the_blocks_are_trimmed() -> None:
    cut = blocks("<think>\n a < b \n</think><answer> 4 </answer>")
    assert (cut.think, cut.answer) == ("a < b", "4")


@pytest.mark.parametrize(
    ("response", "fault"),
    [
        ("", "no <think>"),
        ("4", "no <think>"),
        ("2+2 is 4</think> <answer>4</answer>", "no <think>"),
        ("<THINK>a</THINK> <ANSWER>4</ANSWER>", "no <think>"),
        ("<think>a</think> 4", "no <answer>"),
        ("<think>a</think> <answer>4", "no </answer>"),
        ("<think>a <answer>4</answer>", "no </think>"),
        (f"{GOOD} and more", "text after </answer>"),
        (f"Sure: {GOOD}", "text before <think>"),
        ("<think>a</think> so <answer>4</answer>", "text between the blocks"),
        ("<think></think> <answer>4</answer>", "empty think block"),
        ("<think> \n</think> <answer>4</answer>", "empty think block"),
        ("<think>a</think> <answer> </answer>", "empty answer block"),
        ("<think>... -- \u200b</think> <answer>4</answer>", "empty think block"),
        ("<think>a</think> <answer>\u2060.</answer>", "empty answer block"),
        ("<think>a</think> <answer>∅</answer>", ""),
        ("<think>√</think> <answer>∞</answer>", ""),
        (f"{GOOD}{GOOD}", "2 times <think>"),
        ("<think>a</think> <answer>4</answer> <answer>5</answer>", "2 times <answer>"),
        ("<think>a</think></think> <answer>4</answer>", "2 times </think>"),
        ("<answer>4</answer> <think>a</think>", "tags out of order"),
        ("<think>a<answer>4</answer></think>", "tags out of order"),
        ("</think>a<think> <answer>4</answer>", "tags out of order"),
    ],
)
def test_the_first_failure_is_named(response: str, fault: str) -> None:
    assert blocks(response).fault == fault
