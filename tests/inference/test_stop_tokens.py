from pathlib import Path

import pytest
from transformers import GenerationConfig

from reasoner.inference.sampling import StopTexts, decode_completions, end_token_ids, stop_token_ids
from reasoner.types import SamplingParams
from tests.fixtures.tiny import END, OTHER_END, tiny_model, tiny_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


def test_end_token_ids_combine_tokenizer_and_generation_config(tmp_path: Path, tokenizer):  # trap 14
    end, other = tokenizer.convert_tokens_to_ids([END, OTHER_END])
    model = tiny_model(vocabulary=len(tokenizer))
    model.generation_config = GenerationConfig(eos_token_id=[other])
    model.save_pretrained(tmp_path)
    assert end_token_ids(tmp_path, tokenizer) == {end, other}
    GenerationConfig(eos_token_id=other).save_pretrained(tmp_path)
    assert end_token_ids(tmp_path, tokenizer) == {end, other}
    (tmp_path / "generation_config.json").unlink()
    model.config.eos_token_id = other
    model.config.save_pretrained(tmp_path)
    assert end_token_ids(tmp_path, tokenizer) == {end, other}


@pytest.mark.parametrize(
    ("turn", "ends"),
    [
        ("{{ m['content'] }}" + OTHER_END + "\n", {END, OTHER_END}),  # Qwen2.5's base
        ("{{ m['content'] }}\nUser:", {END}),
        ("{{ raise_exception('no') }}", {END}),
    ],
)
def test_special_token_after_a_turn_of_the_chat_template_ends_a_completion(tmp_path: Path, turn, ends):
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}" + turn + "{% endfor %}"
    GenerationConfig(eos_token_id=tokenizer.eos_token_id).save_pretrained(tmp_path)
    assert end_token_ids(tmp_path, tokenizer) == set(tokenizer.convert_tokens_to_ids(sorted(ends)))


def test_stop_token_ids_accept_only_added_tokens(tokenizer):
    learnt = min(token for token in tokenizer.get_vocab() if token.isascii() and token.isalpha() and len(token) == 2)
    ids, others = stop_token_ids(SamplingParams(num_samples=1, stop=("</answer>", learnt, "###")), tokenizer)
    assert (ids, others) == ([tokenizer.convert_tokens_to_ids("</answer>")], (learnt, "###"))
    gemma = tiny_tokenizer(tags=("\n\n", "\n\n\n"))
    assert stop_token_ids(SamplingParams(num_samples=1, stop=("\n\n",)), gemma) == ([], ("\n\n",))


@pytest.mark.parametrize(
    ("written", "stop_texts", "expected"),
    [
        ("<think> 1 </think> <answer> 2 </answer>" + END, (), "<think> 1 </think> <answer> 2 </answer>"),  # trap 20
        ("no end", (), "no end"),
        ("the pad stays <|pad|>" + END, (), "the pad stays <|pad|>"),
        ("six #### 6\n\n", ("####",), "six ####"),  # trap 16: the last token went on
        ("a b c", ("c", "b"), "a b"),
        (END, (), ""),
        ("", (), ""),
    ],
)
def test_texts_end_at_end_token_or_stop_text(written, stop_texts, expected, tokenizer):
    ends = frozenset({tokenizer.eos_token_id})
    rows = [tokenizer(text)["input_ids"] for text in (written, "12 plus 30", "")]
    assert decode_completions(rows, ends, stop_texts, tokenizer) == [expected, "12 plus 30", ""]


@pytest.mark.parametrize("texts", [("</answer>",), ("\n\n", " 42."), ("é",), ("End", "ünd")])
def test_stop_text_is_complete_at_the_token_after_which_the_whole_text_has_it(texts):  # trap 16
    """Against a search in the text of all tokens so far, where tags and letters are spelt in several tokens."""
    tokenizer = tiny_tokenizer(tags=())
    tokens = tokenizer("Wait </answer>\n so 42.\n\nEnd é und ünd </answer> 42.")["input_ids"]
    text_before, expected = "", []
    for size in range(1, 1 + len(tokens)):
        text = tokenizer.decode(tokens[:size], skip_special_tokens=False)
        expected.append(any(text.count(stop) > text_before.count(stop) for stop in texts))
        text_before = text
    stops = StopTexts(tokenizer)
    assert [stops.are_complete(texts, tokens[:size]) for size in range(1, 1 + len(tokens))] == expected
    assert sum(expected) >= 1
    assert not stops.are_complete((), tokens)
