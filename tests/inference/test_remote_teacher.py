"""A teacher on servers: the log-probabilities of a teacher in this process, and what of a server is refused."""

import json
from dataclasses import replace

import pytest
import torch

from reasoner.config.learning import TeacherConfig
from reasoner.config.resolve import resolve
from reasoner.config.schema import EngineConfig
from reasoner.inference.remote_teacher import RemoteTeacher
from reasoner.inference.server_answers import parse_prompt_logprobs, vocabulary_identity
from reasoner.inference.server_client import ServerError
from reasoner.rl.batch import collate
from reasoner.trainer.resolve_run import resolve_new_run
from reasoner.types import EngineUnavailableError, Observation
from tests.fixtures.inference_server import IDENTITY, InferenceServer, alive
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import config, group, make_trainer

TOKENIZER = tiny_tokenizer()
MODEL = tiny_model(vocabulary=60, width=32, layers=2, seed=5).requires_grad_(False)
SAME = IDENTITY | {"tokenizer": vocabulary_identity(TOKENIZER)}
PROMPTS = {(5, 6): [[7, 8, 9], [11], [12, 13], [16]], (9,): [[3, 4], [5, 6, 7, 8], [9], [10, 11, 12]]}


def scores(ids):
    logits = MODEL(input_ids=torch.tensor([ids])).logits[0, :-1]
    return logits.log_softmax(-1)[range(len(ids) - 1), ids[1:]].tolist()


@pytest.fixture
def servers():
    yield from alive(*(InferenceServer(identity=SAME, score=scores) for _ in range(2)))


def teacher_of(*servers, seconds=20.0):
    urls = ",".join(server.url for server in servers)
    return RemoteTeacher(urls, TOKENIZER, EngineConfig(timeout_seconds=seconds))


def trainer_of(**teacher):
    return make_trainer(replace(config(), teacher=TeacherConfig(model="t", weight=0.5)), **teacher)


def batch_of():
    groups = [group(prompt, rows, [1.0, 0.0, 0.0, 1.0]) for prompt, rows in PROMPTS.items()]
    one = groups[1].completions[1]
    one = replace(one, observations=(Observation(1, 3, 0, 0, is_error=False),))  # its second and third token
    completions = (groups[1].completions[0], one, *groups[1].completions[2:])
    return collate([groups[0], replace(groups[1], completions=completions)])


def test_advantages_are_those_of_the_same_teacher_in_this_process(servers):
    trainers = [trainer_of(teacher=MODEL), trainer_of(remote_teacher=teacher_of(*servers))]
    local, remote = (one.compute_advantages(one.compute_logprobs(batch_of())) for one in trainers)
    torch.testing.assert_close(remote.teacher_logprobs, local.teacher_logprobs, rtol=0, atol=1e-5)
    torch.testing.assert_close(remote.advantages, local.advantages, rtol=0, atol=1e-5)
    assert not remote.teacher_logprobs[~remote.mask].any() and remote.teacher_logprobs[remote.mask].all()
    assert all(server.num_completions for server in servers)


def test_rows_of_a_server_that_fails_are_scored_by_another(servers, capsys):
    teacher = teacher_of(*servers)
    expected = teacher.all_logprobs(batch_of())
    servers[0].faults = [500, "cut"]
    servers[1].dies_after = servers[1].num_completions + 1
    torch.testing.assert_close(teacher.all_logprobs(batch_of()), expected, rtol=0, atol=0)
    assert "is left out" in capsys.readouterr().err


def test_server_whose_weights_a_run_has_replaced_is_no_teacher(servers):
    teacher = teacher_of(servers[0], seconds=0.5)
    servers[0].version = servers[1].version = "run-1"
    with pytest.raises(EngineUnavailableError, match="run-1"):
        teacher.all_logprobs(batch_of())
    with pytest.raises(EngineUnavailableError, match="run-1"):
        teacher_of(servers[1])


def test_server_with_another_tokenizer_or_too_little_room_is_refused(servers):
    servers[0].identity = SAME | {"vocab_size": 8}  # another model
    teacher_of(servers[0])
    servers[0].identity = SAME | {"tokenizer": "abc"}
    with pytest.raises(ValueError, match=rf"tokenizer abc there and {SAME['tokenizer']} here"):
        teacher_of(servers[0])
    teacher = teacher_of(servers[1])
    teacher.check_room(511)
    with pytest.raises(ValueError, match=r"512 tokens .* needs 513"):
        teacher.check_room(512)


@pytest.mark.parametrize(
    "entries",
    [
        None, [], [None], [None, {"7": {"logprob": -1.0}}], [None, {"7": {"logprob": -1.0}}, {"9": {"logprob": -1.0}}],
        [None, {"7": {"logprob": -1.0}}, {"8": {"logprob": 0.1}}],
        [None, {"7": {"logprob": -1.0}}, {"8": {"logprob": float("nan")}}],
        [None, {"7": {"logprob": True}}, {"8": {"logprob": -1.0}}], [None, {"7": {"logprob": -1.0}}, {"8": -1.0}],
        [None, {"7": {"logprob": -1.0}}, None], [None, *[{"7": {"logprob": -1.0}}] * 3],
    ],
)  # fmt: skip
def test_answer_without_a_log_probability_of_each_token_is_the_servers_fault(entries):
    answer = json.loads(json.dumps({"choices": [{"prompt_logprobs": entries}]}))
    with pytest.raises(ServerError, match="malformed"):
        parse_prompt_logprobs(answer, [5, 7, 8])
    good = {"choices": [{"prompt_logprobs": [None, {"7": {"logprob": -1}, "3": {}}, {"8": {"logprob": -2.5}}]}]}
    assert parse_prompt_logprobs(good, [5, 7, 8]) == [-1, -2.5]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"teacher.kl": "full"}, r"teacher\.kl full"),
        ({"teacher.prompt": "{question} {answer}"}, r"teacher\.prompt"),
        ({"sampling.temperature": 0.7}, r"sampling\.temperature"),
        ({"teacher.model": "http://a:1/v1"}, r"teacher\.model has 'http://a:1/v1'"),
        ({"control": "random-reward"}, r"teacher\.model"),
    ],
)
def test_settings_that_a_server_cannot_serve_are_refused(settings, message):
    common = {"model": "base", "teacher.model": "http://a:1, http://b:2"}
    assert resolve([("test", common)]).config.teacher.loaded == ""
    resolve_new_run(common, origin="test")
    with pytest.raises(ValueError, match=message):
        resolve_new_run(common | settings, origin="test")
