"""A tiny random Qwen2 with its own tokenizer: loads in transformers and vLLM in a second, and writes varied text."""

from __future__ import annotations

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

END, PAD, OTHER_END = "<|end|>", "<|pad|>", "<|stop|>"
TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_TEXT = [
    "A conversation between User and Assistant. The user asks a question, and the Assistant solves it. The reasoning "
    "process and answer are enclosed within tags. User: What is 12 plus 30? Assistant: 12 + 30 = 42. Wait, so 42.",
    "Question: 7 * 8 - 5 = 51? Answer: 56 - 5 = 51, check 50 + 6 - 5 = 51, yes.",
]


def tiny_tokenizer(*, tags: tuple[str, ...] = TAGS) -> PreTrainedTokenizerFast:
    """Byte-level BPE over a few sentences. `tags` are ordinary added tokens; without one it is spelt in pieces."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\d| ?[A-Za-z]+| ?[^\sA-Za-z\d]+|\s+"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=[END, PAD, OTHER_END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_TEXT, trainer)
    tokenizer.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in tags])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=PAD, clean_up_tokenization_spaces=False
    )


def tiny_model(
    *,
    vocabulary: int,
    width: int = 64,
    layers: int = 2,
    heads: int = 4,
    key_value_heads: int = 2,
    seed: int = 0,
    end_bias: float = 0.0,
) -> Qwen2ForCausalLM:
    """Random weights with a spread that makes next-token distributions neither flat nor certain."""
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=key_value_heads,
        intermediate_size=3 * width,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        initializer_range=0.15,
        eos_token_id=0,
        pad_token_id=1,
        bos_token_id=None,
    )
    return Qwen2ForCausalLM(config).float().eval()
