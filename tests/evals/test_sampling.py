"""The response cache: cached responses are not sampled again, and torn ones are sampled with the same seeds."""

import errno
from contextlib import closing

import pytest

from reasoner.evals.response_cache import ResponseCache
from reasoner.evals.sampling import Sampler, generate_responses, num_missing
from reasoner.rollouts.seeds import sample_seed
from reasoner.types import Response, SamplingParams
from tests.fixtures.scripted import Scripted, prompt

PROMPTS = [prompt(name, "4") for name in "abc"]
SCRIPT = {name: [f"{name}{j} \ud800" for j in range(8)] for name in "abc"}  # a lone surrogate is text, too


def cached(path, engine, num, prompts=PROMPTS):
    sampler, sampling = Sampler(lambda: engine), SamplingParams(num_samples=num)
    with closing(ResponseCache(path, {"model": "x"})) as cache:
        return generate_responses(sampler, prompts, sampling, seed=0, cache=cache)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "x.jsonl"


def test_cached_responses_are_not_sampled_again(path):
    engine = Scripted(SCRIPT)
    first = cached(path, engine, 2)
    assert engine.calls == 1
    assert cached(path, None, 2) == first  # nobody asked
    assert first[1][1] == Response("b1 \ud800", 2, "stop", sample_seed(0, "eval", "b", 1))


def test_more_samples_extend_the_earlier_ones(path):
    first = cached(path, Scripted(SCRIPT), 2)
    engine = Scripted(SCRIPT)
    more = cached(path, engine, 5)
    assert [row[:2] for row in more] == first
    assert [len(row) for row in engine.seeds] == [3, 3, 3]
    fresh = Sampler(lambda: Scripted(SCRIPT))
    assert more == generate_responses(fresh, PROMPTS, SamplingParams(num_samples=5), seed=0)
    assert cached(path, None, 3) == [row[:3] for row in more]


def test_responses_depend_on_the_seed_and_not_on_other_problems_or_order(path):
    alone = cached(path, Scripted(SCRIPT), 2, [PROMPTS[1]])
    assert cached(path, Scripted(SCRIPT), 2, PROMPTS[::-1])[1] == alone[0]
    cached(path, Scripted(SCRIPT), 2)
    with closing(ResponseCache(path, {})) as cache:
        assert num_missing(PROMPTS, SamplingParams(num_samples=3), seed=0, cache=cache) == 3
        assert num_missing(PROMPTS, SamplingParams(num_samples=2), seed=1, cache=cache) == 6


@pytest.mark.parametrize("num_kept", [0, 1, 40, -1])
def test_a_torn_cache_line_is_cut_and_its_batch_sampled_again(path, monkeypatch, num_kept):
    monkeypatch.setattr("reasoner.evals.sampling._AT_ONCE", 4)  # two problems a batch
    whole = cached(path, Scripted(SCRIPT), 2)
    content = path.read_bytes()
    first, second = content.splitlines(keepends=True)
    path.write_bytes(first + second[:num_kept])
    engine = Scripted(SCRIPT)
    assert cached(path, engine, 2) == whole
    assert engine.calls == 1 and len(engine.seeds) == 1
    assert path.read_bytes() == content


def test_a_damaged_cache_line_is_refused_by_number_and_a_cache_in_use_by_another_evaluation(path):
    cached(path, Scripted(SCRIPT), 2)
    with closing(ResponseCache(path, {})), pytest.raises(ValueError, match="another evaluation is writing"):
        ResponseCache(path, {})
    path.write_bytes(b'{"rows": 3}\n' + path.read_bytes())
    with pytest.raises(ValueError, match=r"x\.jsonl, line 1 is damaged"):
        cached(path, Scripted(SCRIPT), 2)


def test_a_cache_on_a_file_system_without_locks_is_used(path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("reasoner.evals.response_cache.fcntl.flock", flock)
    first = cached(path, Scripted(SCRIPT), 2)
    assert cached(path, None, 2) == first
