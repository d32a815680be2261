"""Completions of several turns, sampled by both engines from a tiny random model, with a tool that answers any call."""

import json
from dataclasses import replace

import pytest
import torch

from data import Problem
from data.environments.spec import EnvironmentRow
from data.generated import problems
from reasoner.config.schema import EngineConfig, ToolsConfig
from reasoner.inference.answers import AnswerLog, Environments, Tools
from reasoner.inference.factory import make_engine
from reasoner.inference.sampling import decode_completions, end_token_ids
from reasoner.inference.tool_engine import ToolEngine
from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.rl.batch import collate
from reasoner.rollouts.prompts import load_template, render
from reasoner.tools.forms import FORMS, ToolForm, tool_form
from reasoner.tools.names import environments_of
from reasoner.trainer.parity import logprobs_of, sample
from reasoner.types import Answer, SamplingParams
from tests.fixtures.tiny import END, OTHER_END, seeds
from tests.inference.test_remote_engine import SamplingServer

SAMPLED = SamplingParams(num_samples=4, temperature=1.0, max_tokens=60, stop=("</answer>",))
FORM = ToolForm(" ", "e", "\n[", "]\n")  # what a random model writes now and then


class Counting:
    """A tool that answers with the number of characters of a call; those of one that has an `a` are errors."""

    def __init__(self, text="{}"):
        self.calls, self.text = [], text

    def answers(self, calls, on_answer):
        self.calls.append(list(calls))
        for place, call in enumerate(calls):
            on_answer(place, Answer(self.text.format(len(call)), "a" in call))

    def close(self):
        pass


class Recording:
    """An engine, with the prompts and seeds of its calls."""

    def __init__(self, engine):
        self.engine, self.name, self.accepts_adapter, self.calls = engine, engine.name, engine.accepts_adapter, []

    def generate(self, prompts, sampling, seeds, *callbacks):
        self.calls.append((list(prompts), seeds, sampling))
        return self.engine.generate(prompts, sampling, seeds, *callbacks)


@pytest.fixture(scope="module")
def prompts(folder):
    tokenizer = load_tokenizer(folder)
    return [render(problem, load_template("none"), tokenizer) for problem in problems("train", 6)]


@pytest.fixture
def own_engine(engines):
    """One of the two engines, which sample the same."""
    return engines["transformers"]


def with_tool(engine, folder, *, pool=None, form=FORM, max_model_len=256, log=None, **settings):
    tokenizer = load_tokenizer(folder)
    ends = end_token_ids(folder, tokenizer)
    cfg = ToolsConfig(names="fake", **settings)

    def decode(ids):
        return decode_completions([ids], ends, (), tokenizer)[0]

    tools = Tools(pool or Counting(), form, cfg)
    return ToolEngine(engine, [tools], tokenizer, decode, max_model_len=max_model_len, log=log)


def flat(groups):
    return [completion for own in groups for completion in own]


def test_every_turn_continues_the_ids_before_it_and_no_text_drifts(engine, folder, prompts):
    recorded, tokenizer = Recording(engine), load_tokenizer(folder)
    groups = with_tool(recorded, folder).generate(prompts, SAMPLED, seeds(prompts))
    ids_of_turns = {tuple(p.token_ids) for own, _, _ in recorded.calls[1:] for p in own}
    with_answers = [(p, c) for p, own in zip(prompts, groups, strict=True) for c in own if c.observations]
    assert len(with_answers) > 5 and max(len(c.observations) for _, c in with_answers) > 1
    for prompt, completion in with_answers:
        ids, text = list(completion.token_ids), completion.text
        assert len(ids) == len(completion.logprobs)
        for part in completion.observations:
            assert (*prompt.token_ids, *ids[: part.end]) in ids_of_turns
            assert tokenizer.decode(ids[: part.start], skip_special_tokens=False) == text[: part.text_start]
            assert tokenizer.decode(ids[part.start : part.end]) == text[part.text_start : part.text_end]
            assert set(completion.logprobs[part.start : part.end]) == {0.0}
            assert part.end < len(ids)  # a sampled token follows
        without_end = ids[:-1] if ids[-1] in (0, 2) else ids
        assert tokenizer.decode(without_end, skip_special_tokens=False).startswith(text)
        calls = [len(own) for own in completion.own_text.replace("\n", "").split("e")[:-1]]
        assert len(completion.own_text) == len(text) and len(calls) >= len(completion.observations)


def test_a_completion_without_a_call_is_the_engines_own(engine, folder, prompts):
    own = flat(engine.generate(prompts, SAMPLED, seeds(prompts)))
    tools = flat(with_tool(engine, folder, form=replace(FORM, stop="never")).generate(prompts, SAMPLED, seeds(prompts)))
    one, other = ([(c.text, list(c.token_ids), c.finish, list(c.logprobs)) for c in side] for side in (own, tools))
    assert one == other


def test_engines_sample_the_same_trajectories_and_batching_changes_none(engines, folder, prompts):
    wrapped = {name: with_tool(engine, folder) for name, engine in engines.items()}
    whole = {name: flat(one.generate(prompts, SAMPLED, seeds(prompts))) for name, one in wrapped.items()}
    one = wrapped["transformers"]
    alone = [flat(one.generate([p], SAMPLED, [s])) for p, s in zip(prompts, seeds(prompts), strict=True)]
    own = [(list(c.token_ids), c.observations, c.finish) for c in whole["transformers"]]
    assert own == [(list(c.token_ids), c.observations, c.finish) for c in flat(alone)]
    for completions in whole.values():
        assert [(list(c.token_ids), c.observations, c.finish) for c in completions] == own


def test_a_server_samples_the_trajectories_of_the_engine_in_this_process(engines, folder, prompts):
    server, local = SamplingServer(folder), with_tool(engines["transformers"], folder)
    remote = make_engine(EngineConfig(urls=server.url), folder, max_model_len=512, seed=0)
    whole = [flat(with_tool(remote, folder).generate(prompts, SAMPLED, seeds(prompts)))]
    whole.append(flat(local.generate(prompts, SAMPLED, seeds(prompts))))
    remote.close()
    server.die()
    here, there = ([(list(c.token_ids), c.observations, c.finish) for c in completions] for completions in whole)
    assert here == there and any(observations for _, observations, _ in here)


def test_logprobs_of_every_turn_are_those_of_the_model_on_the_whole_trajectory(engine, folder, prompts):
    groups = sample(with_tool(engine, folder), prompts, SAMPLED)
    assert collate(groups).is_observation.any()
    sampled, own = logprobs_of(groups, load_policy(folder, device=torch.device("cpu")), 1.0)
    assert len(sampled) == sum(group.num_tokens for group in groups)
    assert float((sampled - own).abs().max()) < 1e-3


def test_limits_truncate_a_trajectory(own_engine, folder, prompts):
    for settings, most in (({"max_turns": 1}, 1), ({"max_turns": 2}, 2)):
        completions = flat(with_tool(own_engine, folder, **settings).generate(prompts, SAMPLED, seeds(prompts)))
        assert max(len(c.observations) for c in completions) == most
        cut = [c for c in completions if len(c.observations) == most and c.text.endswith("e")]
        assert cut and {c.finish for c in cut} == {"length"}
    short = replace(SAMPLED, max_tokens=20)
    completions = flat(with_tool(own_engine, folder).generate(prompts, short, seeds(prompts)))
    assert max(len(c.token_ids) for c in completions) <= 20
    assert all(c.finish == "length" for c in completions if len(c.token_ids) == 20 and c.token_ids[-1] not in (0, 2))
    longest = max(len(p.token_ids) for p in prompts)
    narrow = with_tool(own_engine, folder, max_model_len=longest + 16)
    completions = narrow.generate(prompts, SAMPLED, seeds(prompts))
    rows = zip(prompts, completions, strict=True)
    called = [len(p.token_ids) + c.observations[-1].end for p, own in rows for c in own if c.observations]
    assert called and max(called) < longest + 16


def test_an_answer_is_cut_and_its_special_tokens_are_spelt(own_engine, folder, prompts):
    pool, tokenizer = Counting(f"{END}{OTHER_END} 12345678901234567890"), load_tokenizer(folder)
    tool = with_tool(own_engine, folder, pool=pool, max_answer_tokens=12)
    completions = flat(tool.generate(prompts, SAMPLED, seeds(prompts)))
    parts = [(c, part) for c in completions for part in c.observations]
    assert parts
    for completion, part in parts:
        ids = completion.token_ids[part.start : part.end]
        frame = [len(tokenizer(text)["input_ids"]) for text in (FORM.before, FORM.after)]
        assert len(ids) == 12 + sum(frame) and not {0, 2} & set(ids)
        assert completion.text[part.text_start : part.text_end].startswith("\n[<|end")


def test_halves_of_surrogate_pairs_that_a_tool_echoes_are_replaced(engines, folder, prompts, tmp_path):
    log = AnswerLog(tmp_path, 0)
    tool = with_tool(engines["transformers"], folder, pool=Counting("6\ud83d \ud83d\ude00\udc00"), log=log)
    completions = flat(tool.generate(prompts, SAMPLED, seeds(prompts)))
    texts = {one.text[part.text_start : part.text_end] for one in completions for part in one.observations}
    assert texts == {"\n[6\ufffd \U0001f600\ufffd]\n"}
    again = AnswerLog(tmp_path, 1)
    assert any(again.take(json.loads(line)["key"]) for line in (tmp_path / "answers/step-000000.0.jsonl").open())


def test_a_group_is_reported_once_when_all_its_turns_are_done(own_engine, folder, prompts):
    reported = {}

    def on_group_done(place, completions):
        assert place not in reported
        reported[place] = completions

    groups = with_tool(own_engine, folder).generate(prompts, SAMPLED, seeds(prompts), on_group_done)
    assert [reported[place] for place in range(len(prompts))] == groups


class Replying:
    """Environments that reply once to each rollout."""

    def reply(self, turns, on_reply):
        for place, (_, (state, *_)) in enumerate(turns):
            on_reply(place, None if state else "Again.", "replied")


def test_replies_of_environments_are_no_calls_of_tools(engines, folder, prompts):
    place = EnvironmentRow("{}", "", 0, has_turns=True)
    own = [replace(one, problem=replace(one.problem, columns={"environment": place})) for one in prompts]
    tokenizer, tool = load_tokenizer(folder), Counting()
    ends = end_token_ids(folder, tokenizer)
    sources = [Tools(tool, FORM, ToolsConfig(names="python")), Environments(Replying(), ("\n", "\n"))]
    both = ToolEngine(
        engines["transformers"], sources, tokenizer, lambda ids: decode_completions([ids], ends, (), tokenizer)[0],
        max_model_len=256,
    )  # fmt: skip
    sampled = flat(both.generate(own, SAMPLED, seeds(own)))
    parts = [(one.text[part.text_start : part.text_end], part.is_call) for one in sampled for part in one.observations]
    assert {is_call for _, is_call in parts} == {True, False}
    assert all(is_call != ("Again." in text) for text, is_call in parts)
    assert sum(len(one.call_errors) for one in sampled) == sum(is_call for _, is_call in parts)


def test_seeds_of_later_turns_are_a_function_of_seed_and_turn(own_engine, folder, prompts):
    recorded = Recording(own_engine)
    with_tool(recorded, folder).generate(prompts, SAMPLED, seeds(prompts))
    drawn = [seed for _, own, _ in recorded.calls for row in own for seed in row]
    assert len(set(drawn)) == len(drawn) and len(recorded.calls) > 2
    again = Recording(own_engine)
    with_tool(again, folder).generate(prompts, SAMPLED, seeds(prompts))
    assert [own for _, own, _ in again.calls] == [own for _, own, _ in recorded.calls]


def test_logged_answers_are_taken_once_and_not_asked_for_again(engines, folder, prompts, tmp_path):
    engine, first, second = engines["transformers"], Counting("{}x"), Counting("other")
    one = with_tool(engine, folder, pool=first, log=AnswerLog(tmp_path, 0)).generate(prompts, SAMPLED, seeds(prompts))
    path = tmp_path / "answers" / "step-000000.0.jsonl"
    path.write_bytes(path.read_bytes()[:-9])  # killed in writing
    log = AnswerLog(tmp_path, 0, rank=1)
    two = with_tool(engine, folder, pool=second, log=log).generate(prompts, SAMPLED, seeds(prompts))
    assert len(flat(first.calls)) > 5 and len(flat(second.calls)) == 1
    differing = [a for a, b in zip(flat(one), flat(two), strict=True) if a.text != b.text]
    assert len(differing) == 1 and one != two
    more = with_tool(engine, folder, pool=second, log=log).generate(prompts, SAMPLED, seeds(prompts))
    assert all("other" in c.text for c in flat(more) if c.observations)


def test_log_is_removed_with_the_checkpoint_after_the_next(tmp_path):
    log, names = AnswerLog(tmp_path, 4), lambda: sorted(path.name for path in (tmp_path / "answers").iterdir())
    log.add("a", Answer("1", is_error=False))
    log.begin(8)
    log.add("b", Answer(None, is_error=False, state="s"))
    assert names() == ["step-000004.0.jsonl", "step-000008.0.jsonl"]  # the checkpoint of 8 may not be written yet
    log.begin(8)
    assert AnswerLog(tmp_path, 4).take("a") == Answer("1", is_error=False)
    log.begin(12)
    assert names() == ["step-000008.0.jsonl"]
    assert AnswerLog(tmp_path, 8).take("b") == Answer(None, is_error=False, state="s")


@pytest.mark.parametrize(
    ("form", "text", "call"),
    [
        ("tags", "so <python>1 + 1</python>", "1 + 1"),
        ("tags", "<python>1</python> then <python>2</python>", "2"),
        ("tags", "1 + 1</python>", ""),
        ("tags", "<python>1 + 1</python> ", None),
        ("qwen-math", "```python\nprint(1)\n```\n```output", "print(1)\n"),
        ("qwen-math", "```python\nprint(1)\n```", None),
        ("qwen-math", "```output", ""),
        ("qwen3", '<tool_call>\n{"name": "python"}\n</tool_call>', '\n{"name": "python"}'),
    ],
)
def test_call_is_what_stands_before_the_stop_text(form, text, call):
    assert FORMS[form].call_of(text) == call


def test_tools_are_refused_beside_those_of_an_environment_in_the_same_form():
    places = [EnvironmentRow("{}", "", 0), EnvironmentRow("{}", "", 1, True), EnvironmentRow("{}", "", 2, True, "{}")]
    plain, turns, own = (Problem(place.name, "?", "", columns={"environment": place}) for place in places)
    pool, tools = object(), ToolsConfig(names="python")
    assert environments_of([plain], pool, tools, "boxed") is None
    assert environments_of([plain, turns], pool, tools, "boxed") is pool
    assert environments_of([own], pool, ToolsConfig(), "boxed") is environments_of([own], pool, tools, "none") is pool
    with pytest.raises(ValueError, match=r"tools\.names is 'python'"):
        environments_of([plain, own], pool, tools, "boxed")


def test_form_follows_the_prompt_style():
    assert [tool_form("auto", style) for style in ("r1-zero", "qwen-math", "chat")] == list(FORMS.values())
    assert tool_form("qwen3", "r1-zero") is FORMS["qwen3"]
    assert FORMS["qwen3"].foreign_marks({"<|im_end|>"}) == ["<|im_start|>"] and not FORMS["tags"].foreign_marks(())
