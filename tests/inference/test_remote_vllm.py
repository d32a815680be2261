"""Two real vLLM servers, as `reasoner serve` starts them: the same completions as in this process, weights after each
step, and a server that is killed.
"""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import torch

from data.generated import problems
from reasoner.config.schema import EngineConfig
from reasoner.inference.factory import make_engine
from reasoner.inference.server_token import read_token
from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.models.resolve import BASE
from reasoner.rollouts.prompts import load_template, render
from reasoner.runs.metrics import read_metrics
from reasoner.trainer.parity import max_logprob_diff
from reasoner.types import SamplingParams
from tests.fixtures.ranks import free_port
from tests.fixtures.tiny import perturb, seeds
from tests.fixtures.trainings import flags as flags_of

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed"),
]
SAMPLED = SamplingParams(num_samples=8, temperature=1.0, max_tokens=64, stop=("</answer>",))
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
TRAIN = (sys.executable, "-m", "reasoner", "train")


def stop(process, number):
    """Signal the whole group: a server killed by SIGKILL cannot end its workers."""
    if process.poll() is None:
        os.killpg(process.pid, number)
        process.wait(timeout=60)


@pytest.fixture
def servers():
    ports = [free_port(), free_port()]
    commands = [[sys.executable, "-m", "reasoner", "serve", "--port", str(port)] for port in ports]
    processes = [subprocess.Popen(words, env=ENVIRONMENT, start_new_session=True) for words in commands]
    yield processes, ",".join(f"http://127.0.0.1:{port}" for port in ports)
    for process in processes:
        stop(process, signal.SIGKILL)


def test_completions_equal_in_process_ones_and_weights_follow_the_policy(servers):
    _, urls = servers
    tokenizer, model = load_tokenizer(BASE), load_policy(BASE, device=torch.device("cpu"))
    prompts = [render(problem, load_template("r1-zero"), tokenizer) for problem in problems("train", 16)]
    remote = make_engine(EngineConfig(urls=urls), BASE, max_model_len=512, seed=0, run="runs/first")
    with pytest.raises(ValueError, match="runs/first"):  # another run, while that one lives
        make_engine(EngineConfig(urls=urls), BASE, max_model_len=512, seed=0)
    local = make_engine(EngineConfig(name="vllm"), BASE, max_model_len=512, seed=0)
    sampled = [engine.generate(prompts, SAMPLED, seeds(prompts, num=8, start=2**62)) for engine in (remote, local)]
    pairs = [pair for rows in zip(*sampled, strict=True) for pair in zip(*rows, strict=True)]
    same = sum((a.token_ids, a.text, a.finish) == (b.token_ids, b.text, b.finish) for a, b in pairs)
    assert same >= len(pairs) - 2  # a tie within rounding
    perturb(model, noise=0.01)
    assert max_logprob_diff(remote, model, prompts[:4], SAMPLED) > 1e-2
    remote.update_weights(model.state_dict().items(), 1)
    assert max_logprob_diff(remote, model, prompts[:4], SAMPLED) < 2e-4  # rounding: a server computes other batches
    remote.close()
    local.close()


def test_teacher_on_servers_teaches_what_the_same_one_in_this_process_does(servers, tmp_path):
    _, urls = servers
    student = tmp_path / "student"
    perturb(load_policy(BASE, device=torch.device("cpu")), noise=0.01).save_pretrained(student)
    load_tokenizer(BASE).save_pretrained(student)
    settings = {
        "model": student, "preset": "base", "steps": 3, "run.dir": tmp_path, "threads": 1,
        "data.prompts_per_step": 4, "algo.group_size": 4, "sampling.max_tokens": 64, "validation.interval": 0,
        "eval.heldout_problems": 0,
        "engine.name": "transformers", "teacher.alone": True, "teacher.weight": 0.5,
        "algo.filter_zero_advantages": False,
    }  # fmt: skip
    lines = {}
    for name, model in (("here", "base"), ("there", urls)):
        command = [*TRAIN, *flags_of(settings | {"teacher.model": model, "run.name": name})]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        lines[name] = read_metrics(tmp_path / name)
    for here, there in zip(*lines.values(), strict=True):
        assert here["teacher/kl"] > 0.001
        for name in ("teacher/kl", "grad_norm", "entropy"):
            assert there[name] == pytest.approx(here[name], rel=1e-4), name


def test_no_route_of_a_server_answers_without_the_token_and_no_list_of_processes_shows_it(servers):
    _, urls = servers
    url = urls.partition(",")[0]
    make_engine(EngineConfig(urls=urls), BASE, max_model_len=512, seed=0).close()  # waits for the servers
    good = {"Authorization": f"Bearer {read_token()}"}
    paths = httpx.get(f"{url}/openapi.json", headers=good, trust_env=False).json()["paths"]
    assert {"/collective_rpc", "/pause", "/update_weight_version", "/sleep", "/health", "/v1/completions"} <= set(paths)
    for path, methods in paths.items():
        for method in methods:
            for headers, status in (({}, 401), (good | {"Origin": url}, 403), (good | {"Host": "evil.example"}, 403)):
                answer = httpx.request(method, url + path, headers=headers, trust_env=False)
                assert answer.status_code == status, (method, path, headers)
    assert httpx.get(f"{url}/is_paused", headers=good, trust_env=False).json() == {"is_paused": False}
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert any(urls.rpartition(":")[2].encode() in one for one in commands)
    assert not any(read_token().encode() in one for one in commands)


def test_run_goes_on_when_a_server_is_killed(servers, tmp_path):
    processes, urls = servers
    settings = {
        "model": "base", "steps": "5", "run.name": "r", "run.dir": str(tmp_path), "engine.urls": urls,
        "data.prompts_per_step": "4", "algo.group_size": "4", "sampling.max_tokens": "32", "validation.interval": "0",
        "eval.heldout_problems": "0", "threads": "1",
    }  # fmt: skip
    metrics, command = tmp_path / "r" / "metrics.jsonl", [*TRAIN, *flags_of(settings)]
    run = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    while run.poll() is None and not (metrics.is_file() and len(metrics.read_text().splitlines()) >= 2):
        time.sleep(0.2)
    stop(processes[1], signal.SIGKILL)
    _, errors = run.communicate(timeout=900)
    assert run.returncode == 0, errors
    assert errors.count("is left out") == 1
    gaps = [json.loads(line)["parity/logprob_diff_max"] for line in metrics.read_text().splitlines()]
    assert len(gaps) == 5 and max(gaps) < 2e-5
