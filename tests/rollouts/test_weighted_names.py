"""Lists of names with weights: what is read, and what is refused by the setting's name."""

import pytest

from reasoner.rollouts.reward_functions import parse_weighted


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("", {}),
        ("a", {"a": 1.0}),
        (" a = 0.5 ,b,", {"a": 0.5, "b": 1.0}),
        ("runs/x=1/step=-2e-1", {"runs/x=1/step": -0.2}),
    ],
)
def test_weights_are_read_by_name(text, weights):
    assert parse_weighted("reward.model", text, "MODEL") == weights


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((f"a,b={weight}", f"'b={weight}'; it takes MODEL or MODEL=WEIGHT") for weight in ("", "x", "nan", "-inf")),
        ("=2", "'=2'; it takes MODEL"),
        ("a,a=2", "'a' twice"),
        ("a=1, a =2", "'a' twice"),
    ],
)
def test_faulty_entry_is_refused_by_setting_and_entry(text, message):
    with pytest.raises(ValueError, match=rf"^reward\.model has {message}"):
        parse_weighted("reward.model", text, "MODEL")
