"""Check that tokenizer, model and prompt template fit: first token, prefill, end tokens, stop texts, chat turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from reasoner.doctor.findings import Finding, Severity
from reasoner.inference.sampling import decode_completions, stop_token_ids
from reasoner.rollouts.prompts import Template
from reasoner.types import Prompt, SamplingParams
from verifiers.questions import question_of
from verifiers.rewards import judge_response

# A correct response by extraction (verifiers.extract.EXTRACTORS).
_CORRECT_RESPONSES = {
    "strict": "<think> So. </think> <answer> {gold} </answer>",
    "boxed": "So \\boxed{{{gold}}}.",
    "gsm8k": "So.\n#### {gold}",
    "last-number": "So it is {gold}.",
    "lenient": "So \\boxed{{{gold}}}.",
}


def check_tokenizer(
    tokenizer: PreTrainedTokenizerBase,
    policy: PreTrainedModel,
    template: Template,
    prompts: Sequence[Prompt],
    ends: frozenset[int],
) -> Iterator[Finding]:
    """The findings on tokenizer and template. `ends`: every token id that ends a completion."""
    yield _end(tokenizer, policy, ends, max(max(prompt.token_ids) for prompt in prompts))
    yield _begin(tokenizer, template, prompts)
    yield _correct_response(tokenizer, template, prompts[0], ends)
    if template.chat:
        yield _turn(tokenizer, template, ends)


def _end(tokenizer: PreTrainedTokenizerBase, policy: PreTrainedModel, ends: frozenset[int], largest: int) -> Finding:
    """Check EOS and pad, and that the model has an embedding for each token. `largest`: largest token id in prompts."""
    embeddings = cast(torch.Tensor, policy.get_input_embeddings().weight)
    rows = embeddings.shape[0]
    if max(largest, *ends) >= rows:
        text = f"the tokenizer has {len(tokenizer):,} tokens, the model {rows:,}, and prompts or ends need more"
        return Finding(Severity.ERROR, "tokenizer", text)
    eos = tokenizer.eos_token_id
    end_tokens = ", ".join(f"{tokenizer.convert_ids_to_tokens(i)!r}" for i in sorted(ends))
    configured = policy.generation_config.eos_token_id
    if configured is not None and eos not in (configured if isinstance(configured, list) else [configured]):
        text = f"the tokenizer's end token {tokenizer.eos_token!r} is not the generation config's; "
        text += f"ends with {end_tokens}"
        return Finding(Severity.WARNING, "tokenizer", text)
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id == eos:
        pad = f"pad {'is the end token' if tokenizer.pad_token_id == eos else 'none'} (padding is masked by lengths)"
    else:
        pad = f"pad {tokenizer.pad_token!r}"
    return Finding(Severity.OK, "tokenizer", f"{len(tokenizer):,} tokens, ends with {end_tokens}, {pad}")


def _begin(tokenizer: PreTrainedTokenizerBase, template: Template, prompts: Sequence[Prompt]) -> Finding:
    """Check BOS, prefill, and how the tokenizer encodes the prompts."""
    prompt, bos = prompts[0], tokenizer.bos_token_id
    begins = bos is not None and prompt.token_ids[0] == bos
    unknown = sum(tokenizer.unk_token_id in one.token_ids for one in prompts if tokenizer.unk_token_id is not None)
    without = prompt.text.removesuffix(template.prefill)
    alone = tokenizer(without, add_special_tokens=not template.chat)["input_ids"]
    alone = alone[:-1] if alone[-1] == tokenizer.eos_token_id else alone
    faults = {
        f"begins with {tokenizer.bos_token!r} twice": begins and prompt.token_ids[1:2] == (bos,),
        f"the chat template leaves {tokenizer.bos_token!r} out, which this tokenizer puts before text": (
            template.chat and bos is not None and not begins and tokenizer("a")["input_ids"][0] == bos
        ),
        "ends in a space, which most tokenizers join with the next word: the model has not seen that split": (
            prompt.text.endswith((" ", "\t"))
        ),
        f"the prefill {template.prefill!r} is merged with the token before it": (
            list(prompt.token_ids[: len(alone)]) != list(alone)
        ),
        f"{unknown} of {len(prompts)} hold characters that the tokenizer does not know": unknown > 0,
    }
    for fault, is_so in faults.items():
        if is_so:
            return Finding(Severity.WARNING, "prompt", fault)
    start = f"begins with {tokenizer.bos_token!r}" if begins else "begins without a special token"
    prefill = (
        f", prefill {template.prefill!r} in {len(prompt.token_ids) - len(alone)} tokens" if template.prefill else ""
    )
    return Finding(Severity.OK, "prompt", f"{start}{prefill}")


def _correct_response(
    tokenizer: PreTrainedTokenizerBase, template: Template, prompt: Prompt, ends: frozenset[int]
) -> Finding:
    """Encode a correct response, cut it where an engine would end it, and check that it is still correct."""
    response = _CORRECT_RESPONSES[template.extract].format(gold=prompt.problem.answer)
    stop_texts_inside = [marker for marker in template.stop if marker in response]
    continuation = f" {response.removeprefix(prompt.prefill.strip()).lstrip()}" + (
        "\nMore text." if stop_texts_inside else ""
    )
    ids = tokenizer(continuation, add_special_tokens=False)["input_ids"]
    stop_ids, stop_texts = stop_token_ids(SamplingParams(num_samples=1, stop=template.stop), tokenizer)
    last = next((place for place, token in enumerate(ids) if token in {*ends, *stop_ids}), len(ids) - 1)
    (text,) = decode_completions([ids[: last + 1]], ends, stop_texts, tokenizer)
    if "More text" in text:
        marker = stop_texts_inside[0]
        text = f"{marker!r} is a token of its own, but is encoded with other tokens: completions do not end there"
        return Finding(Severity.ERROR, "stop", text)
    problem = prompt.problem
    response, question = prompt.prefill + text, question_of(problem)
    score = judge_response(response, problem.answer, problem.verifier, template.extract, question=question)
    if not (score.correct and score.well_formed):
        # Cut before its answer, no response can count.
        severity = Severity.WARNING if prompt.problem.answer in text else Severity.ERROR
        text = f"a correct response would not count ({score.verdict}); it would be read as {response!r}"
        return Finding(severity, "stop", text)
    stops = f"ends at {' or '.join(map(repr, template.stop))}" if template.stop else "no marker, only the end token"
    return Finding(Severity.OK, "stop", f"a correct response counts; {stops}")


def _turn(tokenizer: PreTrainedTokenizerBase, template: Template, ends: frozenset[int]) -> Finding:
    """Check that the token that ends an assistant's turn in the chat template also ends a completion."""
    turns = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "@@"}]
    after = str(tokenizer.apply_chat_template(turns, tokenize=False)).rpartition("@@")[2]
    closing = tokenizer(after.strip(), add_special_tokens=False)["input_ids"][:1]
    if not closing or closing[0] in ends or after.strip().startswith(template.stop or "\0"):
        return Finding(Severity.OK, "chat", "a turn of the chat template ends where a completion does")
    marker = tokenizer.convert_ids_to_tokens(closing[0])
    text = f"a turn of the chat template ends with {marker!r}, a completion does not: put it in stop of a .toml prompt"
    return Finding(Severity.WARNING, "chat", text)
