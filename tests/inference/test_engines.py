"""Both engines under one contract, on a tiny random model: real vLLM, real transformers."""

from dataclasses import replace

import pytest
import torch
from torch._dynamo.utils import counters

from data.generated import problems
from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.rollouts.prompts import load_template, render
from reasoner.trainer.parity import max_logprob_diff
from reasoner.types import Prompt, SamplingParams
from tests.fixtures.tiny import END, OTHER_END, perturbed, seeds

GREEDY = SamplingParams(num_samples=1, temperature=0.0, max_tokens=24, stop=("</answer>",))
SAMPLED = SamplingParams(num_samples=4, temperature=1.0, max_tokens=24, stop=("</answer>",))


@pytest.fixture(scope="module")
def prompts(folder) -> list[Prompt]:
    tokenizer = load_tokenizer(folder)
    return [render(problem, load_template("r1-zero"), tokenizer) for problem in problems("train", 64)]


def restore_weights(engine, folder):
    engine.update_weights(load_policy(folder, device=torch.device("cpu")).state_dict().items(), version=0)


@torch.no_grad()
def check_greedy(outputs, model, prompts):
    """Both engines have the same tokens and texts, up to a tie of the model's logits within rounding."""
    for prompt, (one,), (other,) in zip(prompts, outputs["vllm"], outputs["transformers"], strict=True):
        tokens = zip(one.token_ids, other.token_ids, strict=False)
        split_at = next((at for at, (a, b) in enumerate(tokens) if a != b), None)
        if split_at is None:
            assert (one.token_ids, one.text) == (other.token_ids, other.text)
            continue
        before = torch.tensor([[*prompt.token_ids, *one.token_ids[:split_at]]])
        first, second = model(before).logits[0, -1][[one.token_ids[split_at], other.token_ids[split_at]]]
        assert abs(first - second) < 1e-5


def test_greedy_texts_agree_between_engines_before_and_after_weight_sync(engines, folder, prompts):
    if len(engines) < 2:
        pytest.skip("vLLM is not installed")
    one = seeds(prompts, num=1)
    before = {name: engine.generate(prompts, GREEDY, one) for name, engine in engines.items()}
    check_greedy(before, load_policy(folder, device=torch.device("cpu")), prompts)
    model = perturbed(folder)
    for engine in engines.values():
        engine.update_weights(model.state_dict().items(), version=1)
    after = {name: engine.generate(prompts, GREEDY, one) for name, engine in engines.items()}
    check_greedy(after, model, prompts)
    assert sum(a.text != b.text for (a,), (b,) in zip(before["vllm"], after["vllm"], strict=True)) > 32
    assert {c.policy_version for (c,) in after["vllm"]} == {1}
    for engine in engines.values():
        restore_weights(engine, folder)


def test_engines_sample_same_tokens_from_same_seeds(engines, prompts):
    """64 prompts in one call: more tokens than vLLM computes in a step, so some prompts are computed in two parts."""
    if len(engines) < 2:
        pytest.skip("vLLM is not installed")
    assert sum(len(prompt.token_ids) for prompt in prompts) > 4096
    outputs = {name: engine.generate(prompts, SAMPLED, seeds(prompts)) for name, engine in engines.items()}
    ids = {name: [c.token_ids for row in rows for c in row] for name, rows in outputs.items()}
    assert sum(a != b for a, b in zip(ids["vllm"], ids["transformers"], strict=True)) <= 2  # a tie within rounding


@pytest.mark.parametrize("temperature", [1.0, 0.6])  # traps 7, 19
def test_logprobs_equal_trainer_s_before_and_after_weight_sync(engine, folder, prompts, temperature):  # trap 32
    sampling = replace(SAMPLED, temperature=temperature)
    model = load_policy(folder, device=torch.device("cpu"))
    assert max_logprob_diff(engine, model, prompts[:16], sampling) < 1e-4
    assert all(len(prompt.token_ids) > 64 for prompt in prompts)  # two blocks at least that a stale cache would answer
    other = perturbed(folder)
    assert max_logprob_diff(engine, other, prompts[:16], sampling) > 1e-2  # a stale engine would be noticed
    engine.update_weights(other.state_dict().items(), version=1)
    assert max_logprob_diff(engine, other, prompts[:16], sampling) < 1e-4
    restore_weights(engine, folder)


def test_every_sampled_id_has_a_text(engine, folder, prompts):
    """At random, more than a fifth of the ids would have none, and finetuning refuses such completions."""
    groups = engine.generate(prompts[:16], SAMPLED, seeds(prompts[:16]))
    assert max(id for row in groups for one in row for id in one.token_ids) < len(load_tokenizer(folder))


def test_completion_depends_on_seed_not_on_batch(engine, prompts):  # trap 33
    together = engine.generate(prompts[:8], SAMPLED, seeds(prompts[:8]))
    alone = [engine.generate([p], SAMPLED, [s])[0] for p, s in zip(prompts[:8], seeds(prompts[:8]), strict=True)]
    assert [[c.token_ids for c in row] for row in together] == [[c.token_ids for c in row] for row in alone]
    other = engine.generate(prompts[:8], SAMPLED, seeds(prompts[:8], 4, start=50))
    assert [[c.token_ids for c in row] for row in together] != [[c.token_ids for c in row] for row in other]
    assert all(len({tuple(c.token_ids) for c in row}) > 1 for row in together)


def test_groups_are_reported_once_when_done_and_token_counts_during_sampling(engine, prompts):
    finished, arguments = {}, (prompts[:6], SAMPLED, seeds(prompts[:6]))
    groups = engine.generate(*arguments, lambda place, own: finished.setdefault(place, own))
    assert [finished[place] for place in range(6)] == groups and len(finished) == 6
    counts: list[tuple[int, int]] = []
    groups = engine.generate(*arguments, on_decode_step=lambda counted: counts.append(counted()))
    assert groups == engine.generate(*arguments)
    num_tokens = sum(len(completion.token_ids) for row in groups for completion in row)
    assert counts == sorted(counts) and len(counts) >= 20
    assert all(0 <= done <= 24 and 0 <= tokens <= num_tokens for done, tokens in counts)
    assert 0.3 * num_tokens < counts[len(counts) // 2][1] < num_tokens and counts[-1][1] > 0.9 * num_tokens


def test_engine_samples_same_completions_after_interrupt(engine, prompts):
    expected = engine.generate(prompts[:6], SAMPLED, seeds(prompts[:6]))

    def interrupt(place, own):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.generate(prompts, replace(SAMPLED, max_tokens=8), seeds(prompts), interrupt)
    assert engine.generate(prompts[:6], SAMPLED, seeds(prompts[:6])) == expected


def test_sleep_and_wake_up_do_not_change_samples_and_sampling_compiles_no_kernel(engine, prompts):
    before = engine.generate(prompts[:8], SAMPLED, seeds(prompts[:8]))
    engine.sleep(keeps_weights=False)
    engine.wake_up()
    assert engine.generate(prompts[:8], SAMPLED, seeds(prompts[:8])) == before
    torch._dynamo.reset()
    counters.clear()
    engine.generate(prompts[:2], SAMPLED, seeds(prompts[:2]))
    assert not counters["frames"]


def test_finish_reason_matches_last_token(engine, folder, prompts):  # traps 13, 14, 16
    tokenizer = load_tokenizer(folder)
    end, other, close = (tokenizer.convert_tokens_to_ids(token) for token in (END, OTHER_END, "</answer>"))
    sampling = replace(SAMPLED, num_samples=16, temperature=1.5, max_tokens=60)
    completions = [c for row in engine.generate(prompts[:16], sampling, seeds(prompts[:16], num=16)) for c in row]
    assert {c.finish for c in completions} == {"stop", "length"}
    for completion in completions:
        assert not {end, other, close} & set(completion.token_ids[:-1])
        assert len(completion.token_ids) == len(completion.logprobs) <= 60
        assert [memoryview(own).format for own in (completion.token_ids, completion.logprobs)] == ["i", "f"]
        last = completion.token_ids[-1]
        if completion.finish == "length":
            assert len(completion.token_ids) == 60
        else:
            assert last in (end, other, close)
            assert completion.text.endswith("</answer>") == (last == close)
        assert END not in completion.text
        assert OTHER_END not in completion.text
    assert {end, other, close} <= {c.token_ids[-1] for c in completions}


def test_stop_text_ends_completion_and_is_kept(engine, folder, prompts):  # trap 16
    tokenizer = load_tokenizer(folder)
    sampling = replace(SAMPLED, num_samples=16, temperature=1.2, max_tokens=40, stop=(" and",))
    completions = [c for row in engine.generate(prompts[:8], sampling, seeds(prompts[:8], num=16)) for c in row]
    cut = [c for c in completions if " and" in c.text]
    assert cut
    for completion in cut:
        assert completion.finish == "stop"
        assert completion.text.index(" and") == len(completion.text) - len(" and")
        assert tokenizer.decode(completion.token_ids).startswith(completion.text)
        assert " and" not in tokenizer.decode(completion.token_ids[:-1])


def test_vllm_s_own_record_of_a_request_has_the_same_tokens_and_logprobs(engines, prompts):
    """The engine keeps its own record, which is cheaper than vLLM's texts and lists of alternatives."""
    if "vllm" not in engines:
        pytest.skip("vLLM is not installed")
    from vllm import SamplingParams as Params

    engine, sampling = engines["vllm"], replace(SAMPLED, max_tokens=40, stop=(" and", "?"))
    ours = [c for row in engine.generate(prompts[:16], sampling, seeds(prompts[:16])) for c in row]
    ends = sorted(engine._end_ids)
    own = {"stop": [*sampling.stop], "stop_token_ids": ends, "logprobs": 0, "max_tokens": 40, "temperature": 1.0}
    params = [Params(**own, extra_args={"seed": seed}) for row in seeds(prompts[:16]) for seed in row]
    texts = [{"prompt_token_ids": list(prompt.token_ids)} for prompt in prompts[:16] for _ in range(4)]
    theirs = [answer.outputs[0] for answer in engine._llm.generate(texts, params, use_tqdm=False)]
    assert {one.stop_reason for one in theirs} >= {" and", "?", None}
    for one, other in zip(ours, theirs, strict=True):
        assert (list(one.token_ids), one.finish) == (list(other.token_ids), other.finish_reason)
        logprobs = [position[token].logprob for token, position in zip(other.token_ids, other.logprobs, strict=True)]
        assert list(one.logprobs) == pytest.approx(logprobs, abs=1e-5)


def test_tags_are_kept_in_text(engine, prompts, folder):  # trap 20
    tokenizer = load_tokenizer(folder)
    groups = engine.generate(prompts[:16], replace(SAMPLED, num_samples=16), seeds(prompts[:16], num=16))
    completions = [completion for own in groups for completion in own]
    tag = tokenizer.convert_tokens_to_ids("<think>")
    tagged = [c for c in completions if tag in c.token_ids]
    assert tagged
    assert all("<think>" in c.text for c in tagged)


def test_unknown_weights_and_a_prompt_longer_than_the_context_are_refused(engine, folder, prompts):
    with pytest.raises((ValueError, KeyError, AttributeError), match="elsewhere"):
        engine.update_weights([("elsewhere.weight", torch.zeros(2))], version=9)
    restore_weights(engine, folder)
    endless = replace(prompts[0], token_ids=prompts[0].token_ids * 9)
    with pytest.raises(ValueError, match=f"{len(endless.token_ids)}"):
        engine.generate([endless], SAMPLED, seeds([endless]))


def test_engine_leaves_torch_set_num_threads_usable(engines):
    threads = torch.get_num_threads()
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            assert torch.get_num_threads() == number
    finally:
        torch.set_num_threads(threads)
