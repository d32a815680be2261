"""Chat: a response is graded as the reward does."""

import pytest

from app.chat import grade_response

RESPONSE = "2 + 2 = 4, so \\boxed{4}"


@pytest.mark.parametrize(("prompt", "is_correct"), [("boxed", True), ("qwen-math", True), ("r1-zero", False)])
def test_response_is_graded_in_the_form_of_its_prompt_template(prompt, is_correct):
    request = {"question": "What is 2 + 2?", "gold": "4", "verifier": "maths", "prompt": prompt}
    fields = grade_response(RESPONSE, request)
    assert (fields["verdict"] == "correct") is is_correct and fields["is_leniently_correct"]
