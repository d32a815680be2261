"""On-policy distillation: what a teacher adds to the advantages, and runs that learn from one."""

import json
import shutil
from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from reasoner.config.learning import TeacherConfig
from reasoner.config.resolve import resolve
from reasoner.config.schema import Config
from reasoner.models.loading import token_logprobs
from reasoner.rl.batch import collate
from reasoner.rl.credit import teacher_advantages
from reasoner.rl.token_stats import TokenStats
from reasoner.rollouts.prompts import Template, check_teacher_prompt, render, with_teacher_prompt
from reasoner.runs.metrics import read_metrics
from reasoner.trainer.components import with_teacher_prompts
from reasoner.trainer.preflight import preflight
from reasoner.trainer.resolve_run import resolve_new_run
from reasoner.trainer.step_metrics import StepUpdate
from reasoner.trainer.train import accumulate_gradient, train_step
from tests.distributed.runs import SMALL
from tests.fixtures.forkserver import finish
from tests.fixtures.switched_off import without
from tests.fixtures.tiny import perturbed, save_tiny, tiny_model, tiny_tokenizer
from tests.fixtures.toys import PROBLEM, config, group, make_trainer
from tests.fixtures.trainings import flags

VOCABULARY, PROMPT = 60, [5, 6]
LEAN = without("eval", without("validation", SMALL))


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
    own, other = each_token(trainer.model), each_token(teacher())
    return (own.exp() * (own - other)).sum()


def test_expected_gradient_is_that_of_the_exact_divergence_from_the_teacher():
    trainer = trainer_of()
    batch = collate([group(PROMPT, [[token] for token in range(VOCABULARY)], [0.0] * VOCABULARY)])
    own = each_token(trainer.model)
    batch = replace(batch, sampler_logprobs=own.detach()[:, None])
    credit = teacher_advantages(trainer.compute_logprobs(batch))[:, 0]
    parameters = list(trainer.model.parameters())
    expected = torch.autograd.grad(divergence(trainer), parameters)
    sampled = torch.autograd.grad(-(own.exp().detach() * credit * own).sum(), parameters)
    torch.testing.assert_close(sampled, expected, rtol=1e-3, atol=1e-6)


def gradient_of(trainer, batch):
    """The gradient of a training step on the batch, by parameter."""
    stats = StepUpdate(TokenStats(), 1.0)
    with trainer.gradient():
        accumulate_gradient(trainer, trainer.weigh_tokens(trainer.compute_advantages(batch)), stats)
    return [parameter.grad.clone() for parameter in trainer.model.parameters()], stats.token_stats.averages()


TEACHER_PROMPTS = {(5, 6): (5, 6, 40, 41, 42), (9,): (9, 43)}


def with_own_prompt(one):
    return replace(one, prompt=replace(one.prompt, teacher_ids=TEACHER_PROMPTS[one.prompt.token_ids]))


@pytest.mark.parametrize("micro", [10_000, 5])
def test_full_kl_is_that_of_the_teachers_longer_prompt_over_the_same_completions(micro):
    rows = {(5, 6): [[7, 8, 9], [11], [12, 13], [16]], (9,): [[3, 4], [5, 6, 7, 8], [9], [10, 11, 12]]}
    groups = [with_own_prompt(group(prompt, own, [1.0, 0.0, 0.0, 1.0])) for prompt, own in rows.items()]
    own_teacher = TeacherConfig(model="t", alone=True, kl="full", prompt="...")
    cfg = replace(config(loss_aggregation="token", micro=micro), teacher=own_teacher)
    trainer = make_trainer(cfg, teacher=teacher())
    own, metrics = gradient_of(trainer, trainer.compute_logprobs(collate(groups)))
    total, tokens = torch.zeros(()), 0
    for prompt, completions in rows.items():
        for completion in completions:
            log_p = log_softmax_after(trainer.model, prompt, completion)
            log_q = log_softmax_after(teacher(), TEACHER_PROMPTS[prompt], completion)
            total, tokens = total + (log_p.exp() * (log_p - log_q)).sum(), tokens + len(completion)
    assert metrics["teacher/kl"] == pytest.approx(total.item() / tokens, rel=1e-5)
    expected = torch.autograd.grad(total / tokens, list(trainer.model.parameters()))
    torch.testing.assert_close(own, list(expected), rtol=1e-4, atol=1e-5)


def test_rewards_and_full_kl_have_the_gradient_of_a_loop_over_tokens_in_float64():
    rows, rewards = [[7, 8, 9], [11], [12, 13], [16]], [1.0, 0.0, 0.0, 1.0]
    settings = {"teacher": TeacherConfig(model="t", kl="full", weight=0.5)}
    trainer = make_trainer(replace(config(loss_aggregation="token"), **settings), teacher=teacher())
    batch = collate([group(PROMPT, rows, rewards)])
    batch = replace(batch, sampler_logprobs=trainer.passes.all_logprobs(batch).detach())
    own, metrics = gradient_of(trainer, trainer.compute_logprobs(batch))
    policy, other = deepcopy(trainer.model).double(), teacher().double()
    loss, kl, tokens = torch.zeros(()).double(), torch.zeros(()).double(), sum(map(len, rows))
    for completion, reward in zip(rows, rewards, strict=True):
        log_p, log_q = (log_softmax_after(model, PROMPT, completion) for model in (policy, other))
        at_tokens = log_p[range(len(completion)), completion]
        loss = loss - (1.0 if reward else -1.0) * at_tokens.sum() / tokens  # the mean is 0.5, and the deviation
        kl = kl + (log_p.exp() * (log_p - log_q)).sum() / tokens
    policy.zero_grad()
    (loss + 0.5 * kl).backward()
    assert metrics["teacher/kl"] == pytest.approx(kl.item(), rel=1e-5)
    for one, parameter in zip(own, policy.parameters(), strict=True):
        torch.testing.assert_close(one.double(), parameter.grad, rtol=1e-4, atol=1e-6)


def log_softmax_after(model, prompt, completion):
    """[T, V] log-probabilities before each token of the completion, in one plain pass."""
    logits = model(input_ids=torch.tensor([[*prompt, *completion]])).logits[0]
    return logits[len(prompt) - 1 : -1].log_softmax(-1)


def test_teachers_log_probabilities_are_those_of_its_own_prompt():
    trainer = trainer_of(prompt="...")
    completions = [[7, 8, 9], [11], [12, 13], [16]]
    batch = trainer.compute_logprobs(collate([with_own_prompt(group(PROMPT, completions, [0.0] * 4))]))
    for row, ids in zip(batch.teacher_logprobs, completions, strict=True):
        whole = log_softmax_after(teacher(), TEACHER_PROMPTS[tuple(PROMPT)], ids)
        torch.testing.assert_close(row[: len(ids)], whole[range(len(ids)), ids], rtol=1e-5, atol=1e-5)


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


@pytest.mark.parametrize("kl", ["sampled", "full"])
def test_policy_comes_near_the_teacher_on_its_own_samples(kl):
    trainer = trainer_of(alone=True, kl=kl)
    before, generator = divergence(trainer).item(), torch.Generator().manual_seed(0)
    for _ in range(60):
        own = each_token(trainer.model).detach()
        tokens = own.exp().multinomial(64, replacement=True, generator=generator)
        batch = collate([group(PROMPT, [[token] for token in tokens.tolist()], [0.0] * 64)])
        batch = replace(batch, sampler_logprobs=own[tokens][:, None])
        figures = train_step(trainer, trainer.compute_advantages(trainer.compute_logprobs(batch)))
    assert divergence(trainer).item() < before / 5
    differences = own - each_token(teacher())
    measured = differences[tokens].mean() if kl == "sampled" else (own.exp() * differences).sum()
    assert figures["teacher/kl"] == pytest.approx(measured.item(), abs=1e-4)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folders of a policy and of a teacher with other weights."""
    home = tmp_path_factory.mktemp("models")
    policy = save_tiny(home / "policy", layers=1)
    perturbed(policy).save_pretrained(home / "teacher")
    tiny_tokenizer().save_pretrained(home / "teacher")
    return policy, home / "teacher"


def test_run_goes_on_with_the_same_teacher_alone(folders, tmp_path):
    policy, own_teacher = folders
    settings = LEAN | {"model": policy, "steps": 2, "teacher.model": own_teacher, "run.dir": tmp_path}
    finish("train", *flags(settings))
    finish("train", "--resume", tmp_path / "a", "--steps", 3)
    assert [line["teacher/kl"] > 0 for line in read_metrics(tmp_path / "a")] == [True] * 3
    weights = own_teacher / "model.safetensors"
    held = weights.read_bytes()
    perturbed(own_teacher, 8).save_pretrained(own_teacher)
    errors = finish("train", "--resume", tmp_path / "a", "--steps", 4, status=2).errors()
    weights.write_bytes(held)
    assert "teacher.model" in errors and "has changed" in errors


def test_a_teacher_that_cannot_read_the_tokens_or_in_a_control_run_is_refused(folders, tmp_path):
    policy, own_teacher = folders
    common = {"model": str(policy), "run.dir": str(tmp_path), "sampling.max_tokens": 32}
    cfg = resolve([("test", common | {"teacher.model": str(own_teacher)})]).config
    preflight(cfg, tmp_path / "one")
    with pytest.raises(ValueError, match=r"teacher.* does not have the vocabulary"):
        preflight(replace(cfg, teacher=TeacherConfig(model="base")), tmp_path / "one")
    short = json.loads((own_teacher / "config.json").read_text()) | {"max_position_embeddings": 64}
    (own_teacher / "config.json").write_text(json.dumps(short))
    with pytest.raises(ValueError, match=r"teacher .* reads 64 tokens"):
        preflight(cfg, tmp_path / "one")
    with pytest.raises(ValueError, match=r"teacher\.weight"):
        resolve_new_run(common | {"teacher.weight": 0.5}, origin="test")
    with pytest.raises(ValueError, match=r"teacher\.model"):
        resolve_new_run(common | {"teacher.model": str(own_teacher), "control": "random-reward"}, origin="test")


def test_self_distillation_reads_the_solution_and_keeps_to_it_when_resumed(folders, tmp_path):
    policy, _ = folders
    rows = [{"id": str(n), "question": f"{n} + 1?", "answer": f"{n} + 1 is {n + 1}\n#### {n + 1}"} for n in range(6)]
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = LEAN | {"model": policy, "steps": 2, "data.train": data, "run.dir": tmp_path, "teacher.model": policy}
    settings |= {"teacher.prompt": "{question} ({solution})", "teacher.kl": "full", "teacher.alone": True}
    settings |= {"algo.filter_zero_advantages": False}
    finish("train", *flags(settings))
    assert all(line["teacher/kl"] > 0.001 for line in read_metrics(tmp_path / "a"))  # the same model, another prompt
    data.write_text(data.read_text().replace(" is ", " = "))  # the same questions and gold answers
    errors = finish("train", "--resume", tmp_path / "a", "--steps", 3, status=2).errors()
    assert "data.train" in errors and "has changed" in errors


def test_teacher_prompt_takes_the_questions_place_in_the_policys_prompt():
    template, tokenizer = Template("Ask: {question} Go:", prefill="<think>"), tiny_tokenizer()
    problem = replace(PROBLEM, question="7 * 8?", answer="56", columns={"solution": "50 + 6 = 56", "hint": 3})
    prompt = render(problem, template, tokenizer)
    own = with_teacher_prompt(prompt, "{question} \\boxed{{answer}} {solution}", template, tokenizer)
    assert tokenizer.decode(own.teacher_ids) == "Ask: 7 * 8? \\boxed{56} 50 + 6 = 56 Go:<think>"
    assert replace(own, teacher_ids=()) == prompt
    for name in ("hint", "proof"):
        with pytest.raises(ValueError, match=rf"\{{{name}\}}.*'t/0'.*solution"):
            with_teacher_prompt(prompt, "{question} {" + name + "}", template, tokenizer)


@pytest.mark.parametrize("text", ["The answer is {answer}.", "{question}", "again", "{question} \\boxed{7}"])
def test_teacher_prompt_has_the_question_and_something_that_the_policy_does_not_read(text):
    with pytest.raises(ValueError, match=r"teacher\.prompt"):
        check_teacher_prompt(text)


def test_prompts_too_long_for_the_teacher_are_left_out(folders, capsys):
    policy, _ = folders
    template, tokenizer = Template("{question}"), tiny_tokenizer()
    cfg = Config(teacher=TeacherConfig(model=str(policy), prompt="{question} {solution}"))
    cfg = replace(cfg, sampling=replace(cfg.sampling, max_tokens=500))  # of a context of 512
    problems = [replace(PROBLEM, id=str(n), columns={"solution": "7 " * n}) for n in (1, 40)]
    prompts = [render(problem, template, tokenizer) for problem in problems]
    assert [one.problem.id for one in with_teacher_prompts(prompts, cfg, template, tokenizer)] == ["1"]
    assert "dropped 1 of 2" in capsys.readouterr().err
    with pytest.raises(ValueError, match="12 tokens"):
        with_teacher_prompts(prompts[1:], cfg, template, tokenizer)


@pytest.mark.parametrize("settings", [{}, {"algo.name": "ppo", "algo.beta": 0.1, "algo.filter_zero_advantages": False}])
def test_teacher_alone_is_refused_where_rewards_choose_what_it_teaches_or_a_penalty_would_be_lost(settings):
    values = {"model": "base", "teacher.model": "base"}
    with pytest.raises(ValueError, match=r"teacher\.alone"):
        resolve_new_run(values | {"teacher.alone": True} | settings, origin="test")
    resolve_new_run(values | settings, origin="test")
    resolve_new_run(values | {"teacher.alone": True, "algo.filter_zero_advantages": False}, origin="test")


def test_full_kl_is_refused_for_another_kind_of_head_and_with_trpo(folders):
    policy, _ = folders
    other = teacher()
    other.lm_head = torch.nn.Sequential(other.lm_head)
    cfg = replace(config(), teacher=TeacherConfig(model="t", kl="full"))
    with pytest.raises(ValueError, match=r"teacher\.kl full.* Sequential"):
        make_trainer(cfg, teacher=other)
    values = {"model": str(policy), "teacher.model": str(policy), "teacher.kl": "full", "algo.name": "trpo"}
    with pytest.raises(ValueError, match=r"teacher\.kl.* algo\.trust"):
        resolve_new_run(values, origin="test")


def test_teacher_with_another_tokenizer_is_refused_where_the_context_is_not_stated(folders, tmp_path):
    policy, own_teacher = folders
    copy, other = shutil.copytree(policy, tmp_path / "policy"), shutil.copytree(own_teacher, tmp_path / "teacher")
    settings = json.loads((copy / "config.json").read_text())
    del settings["max_position_embeddings"]  # transformers has a default
    (copy / "config.json").write_text(json.dumps(settings))
    vocabulary = json.loads((other / "tokenizer.json").read_text())
    ids = vocabulary["model"]["vocab"]
    ids["7"], ids["8"] = ids["8"], ids["7"]
    (other / "tokenizer.json").write_text(json.dumps(vocabulary))
    common = {"model": str(copy), "run.dir": str(tmp_path), "sampling.max_tokens": 32}
    own, others = (resolve([("test", common | {"teacher.model": str(one)})]).config for one in (own_teacher, other))
    preflight(own, tmp_path / "a")
    with pytest.raises(ValueError, match=r"teacher.* does not have the vocabulary.*'7'"):
        preflight(others, tmp_path / "a")
