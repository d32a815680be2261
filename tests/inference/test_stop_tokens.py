from pathlib import Path

import pytest
from transformers import GenerationConfig

from reasoner.inference.stop_tokens import end_token_ids, stop_token_ids, texts
from reasoner.types import Sampling
from tests.fixtures.tiny import END, OTHER_END, tiny_model, tiny_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


def test_ends_are_the_tokenizer_s_and_the_generation_config_s(tmp_path: Path, tokenizer):  # trap 14
    end, other = tokenizer.convert_tokens_to_ids([END, OTHER_END])
    model = tiny_model(vocabulary=len(tokenizer))
    model.generation_config = GenerationConfig(eos_token_id=[other])
    model.save_pretrained(tmp_path)
    assert end_token_ids(tmp_path, tokenizer) == {end, other}
    GenerationConfig(eos_token_id=other).save_pretrained(tmp_path)
    assert end_token_ids(tmp_path, tokenizer) == {end, other}


def test_without_a_generation_config_the_model_config_says_the_ends(tmp_path: Path, tokenizer):
    end, other = tokenizer.convert_tokens_to_ids([END, OTHER_END])
    model = tiny_model(vocabulary=len(tokenizer))
    model.config.eos_token_id = other
    model.config.save_pretrained(tmp_path)
    assert end_token_ids(tmp_path, tokenizer) == {end, other}


def test_only_an_added_token_stands_for_its_text(tokenizer):
    learnt = min(token for token in tokenizer.get_vocab() if token.isascii() and token.isalpha() and len(token) == 2)
    ids, others = stop_token_ids(Sampling(num=1, stop=("</answer>", learnt, "###")), tokenizer)
    assert (ids, others) == ([tokenizer.convert_tokens_to_ids("</answer>")], [learnt, "###"])


@pytest.mark.parametrize(
    ("written", "stop_texts", "shown"),
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
def test_text_is_what_was_written_up_to_its_end(written, stop_texts, shown, tokenizer):
    ends = frozenset({tokenizer.eos_token_id})
    assert texts([tokenizer(written)["input_ids"]], ends, stop_texts, tokenizer) == [shown]


def test_rows_are_decoded_each_for_itself(tokenizer):
    written = ["12 plus 30", "", " Wait, so 42."]
    assert texts([tokenizer(t)["input_ids"] for t in written], frozenset(), (), tokenizer) == written
