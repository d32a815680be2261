"""On-policy distillation: what a teacher adds to the advantages, and runs that learn from one."""

import json
from dataclasses import replace

import pytest
import torch

from reasoner.config.learning import TeacherConfig
from reasoner.config.resolve import resolve
from reasoner.models.loading import token_logprobs
from reasoner.rl.batch import collate
from reasoner.rl.credit import teacher_advantages
from reasoner.runs.metrics import read_metrics
from reasoner.trainer.preflight import preflight
from reasoner.trainer.resolve_run import resolve_new_run
from reasoner.trainer.train import train_step
from tests.distributed.runs import SMALL
from tests.fixtures.forkserver import TRAINING, forkserver
from tests.fixtures.tiny import perturbed, save_tiny, tiny_model, tiny_tokenizer
from tests.fixtures.toys import config, group, make_trainer
from tests.fixtures.trainings import flags

VOCABULARY, PROMPT = 60, [5, 6]


def teacher():
    return tiny_model(vocabulary=VOCABULARY, width=32, layers=2, seed=5).requires_grad_(False)


def trainer_of(**settings):
    cfg = replace(config(lr=3e-3), teacher=TeacherConfig(model="t", **settings))
    return make_trainer(cfg, teacher=teacher())


def each_token(model):
    """[V] log-probabilities of the tokens after the prompt."""
    rows = torch.arange(VOCABULARY)[:, None]
    zeros, ones = torch.zeros(VOCABULARY).long(), torch.ones(VOCABULARY).long()
    prompt, length = torch.tensor([PROMPT]), torch.tensor([len(PROMPT)])
    return token_logprobs(model, prompt, length, zeros, rows, ones, temperature=1.0)[0][:, 0]


def divergence(trainer):
    own, other = each_token(trainer.policy), each_token(teacher())
    return (own.exp() * (own - other)).sum()


def test_expected_gradient_is_that_of_the_exact_divergence_from_the_teacher():
    trainer = trainer_of()
    batch = collate([group(PROMPT, [[token] for token in range(VOCABULARY)], [0.0] * VOCABULARY)])
    own = each_token(trainer.policy)
    batch = replace(batch, sampler_logprobs=own.detach()[:, None])
    credit = teacher_advantages(trainer.compute_logprobs(batch))[:, 0]
    parameters = list(trainer.policy.parameters())
    expected = torch.autograd.grad(divergence(trainer), parameters)
    sampled = torch.autograd.grad(-(own.exp().detach() * credit * own).sum(), parameters)
    for one, other in zip(sampled, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-6)


def test_rewards_and_teacher_add_up_or_the_teacher_stands_alone():
    rows, rewards = [[7, 8, 9], [11], [12, 13], [16]], [1.0, 0.0, 0.0, 1.0]
    plain = make_trainer(config())
    ruled = plain.compute_advantages(plain.compute_logprobs(collate([group(PROMPT, rows, rewards)]))).advantages
    for alone in (False, True):
        trainer = trainer_of(weight=0.5, alone=alone)
        batch = trainer.compute_logprobs(collate([group(PROMPT, rows, rewards)]))
        part = 0.5 * (batch.teacher_logprobs - batch.sampler_logprobs) * batch.mask
        torch.testing.assert_close(trainer.compute_advantages(batch).advantages, part + (0 if alone else ruled))
        assert not batch.teacher_logprobs[~batch.mask].any()


def test_policy_comes_near_the_teacher_on_its_own_samples():
    trainer = trainer_of(alone=True)
    before, generator = divergence(trainer).item(), torch.Generator().manual_seed(0)
    for _ in range(60):
        own = each_token(trainer.policy).detach()
        tokens = own.exp().multinomial(64, replacement=True, generator=generator)
        batch = collate([group(PROMPT, [[token] for token in tokens.tolist()], [0.0] * 64)])
        batch = replace(batch, sampler_logprobs=own[tokens][:, None])
        figures = train_step(trainer, trainer.compute_advantages(trainer.compute_logprobs(batch)))
    assert divergence(trainer).item() < before / 5
    assert figures["teacher/kl"] == pytest.approx((own - each_token(teacher()))[tokens].mean().item(), abs=1e-4)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folders of a policy and of a teacher with other weights."""
    home = tmp_path_factory.mktemp("models")
    policy = save_tiny(home / "policy", layers=1)
    perturbed(policy).save_pretrained(home / "teacher")
    tiny_tokenizer().save_pretrained(home / "teacher")
    return policy, home / "teacher"


def train(*arguments):
    command = forkserver(TRAINING).start("train", *arguments)
    return command.wait(timeout=240), command.errors()


def test_run_goes_on_with_the_same_teacher_alone(folders, tmp_path):
    policy, own_teacher = folders
    settings = SMALL | {"model": policy, "steps": 2, "teacher.model": own_teacher, "run.dir": tmp_path}
    assert train(*flags(settings))[0] == 0
    assert train("--resume", tmp_path / "a", "--steps", 3)[0] == 0
    assert [line["teacher/kl"] > 0 for line in read_metrics(tmp_path / "a")] == [True] * 3
    weights = own_teacher / "model.safetensors"
    held = weights.read_bytes()
    perturbed(own_teacher, 8).save_pretrained(own_teacher)
    status, errors = train("--resume", tmp_path / "a", "--steps", 4)
    weights.write_bytes(held)
    assert status == 2 and "teacher.model" in errors and "has changed" in errors


def test_a_teacher_that_cannot_read_the_tokens_or_in_a_control_run_is_refused(folders, tmp_path):
    policy, own_teacher = folders
    common = {"model": str(policy), "run.dir": str(tmp_path), "sampling.max_tokens": 32}
    cfg = resolve([("test", common | {"teacher.model": str(own_teacher)})]).config
    preflight(cfg, tmp_path / "one", with_problems=False)
    with pytest.raises(ValueError, match=r"teacher.* does not have the vocabulary"):
        preflight(replace(cfg, teacher=TeacherConfig(model="base")), tmp_path / "one", with_problems=False)
    short = json.loads((own_teacher / "config.json").read_text()) | {"max_position_embeddings": 64}
    (own_teacher / "config.json").write_text(json.dumps(short))
    with pytest.raises(ValueError, match=r"teacher .* reads 64 tokens"):
        preflight(cfg, tmp_path / "one", with_problems=False)
    with pytest.raises(ValueError, match=r"teacher\.weight"):
        resolve_new_run(common | {"teacher.weight": 0.5}, origin="test")
    with pytest.raises(ValueError, match=r"teacher\.model"):
        resolve_new_run(common | {"teacher.model": str(own_teacher), "control": "random-reward"}, origin="test")
