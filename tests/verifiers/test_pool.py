"""Real worker processes and real kills. The hostile answers pass every cheap limit."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from data import Problem
from data.child_process import CHECKOUT
from tests.fixtures.processes import is_alive, wait_until_gone
from verifiers import RewardWeights, Verdict, VerifierPool
from verifiers.worker_process import WorkerProcess

ENDLESS = r"x+\int_{1}^{9999}\frac{\sin(t^{2})}{\cos(t)+\sqrt{t}+\sqrt{t+\sqrt{t+\sqrt{t}}}}dt"


def problem(answer: str, verifier: str = "maths") -> Problem:
    return Problem("p", "?", answer, "test", "test", verifier=verifier)


def response(answer: str) -> str:
    return f"<think>a</think> <answer>{answer}</answer>"


EASY = [(response(str(number)), problem(str(number - number % 3))) for number in range(100)]
EASY_VERDICTS = [Verdict.CORRECT if number % 3 == 0 else Verdict.WRONG for number in range(100)]


@pytest.fixture(scope="module")
def pool() -> Iterator[VerifierPool]:
    with VerifierPool(workers=1, seconds=0.5) as pool:
        yield pool


def test_scores_come_in_order_and_are_counted() -> None:
    with VerifierPool() as fresh:
        scores = fresh.score(EASY, RewardWeights(correct=2.0, format=0.5))
        assert [score.verdict for score in scores] == EASY_VERDICTS
        assert {score.reward for score in scores} == {2.5, 0.5}
        assert fresh.counts == {Verdict.CORRECT: 34, Verdict.WRONG: 66} and fresh.restarts == 0
        assert fresh.score([]) == []


def test_a_late_item_times_out_and_its_batch_goes_on(pool: VerifierPool) -> None:
    before = pool.restarts
    items = [*EASY[:10], (response(ENDLESS), problem("x")), *EASY[10:20]]
    scores = pool.score(items)
    assert [score.verdict for score in scores] == [*EASY_VERDICTS[:10], Verdict.TIMED_OUT, *EASY_VERDICTS[10:20]]
    assert (scores[10].reward, scores[10].well_formed, scores[10].layer) == (0.2, True, "clock")
    assert pool.restarts == before + 1 and pool.counts[Verdict.TIMED_OUT] >= 1


def test_equal_late_answers_cost_one_limit_of_time() -> None:
    late = [(f"<think>{number}</think> <answer>{ENDLESS}</answer>", problem("x")) for number in range(8)]
    with VerifierPool(workers=1, seconds=0.5) as fresh:
        scores = fresh.score([*late, *EASY[:5]])
        assert [score.verdict for score in scores] == [*[Verdict.TIMED_OUT] * 8, *EASY_VERDICTS[:5]]
        assert {(score.extracted, score.well_formed, score.layer) for score in scores[:8]} == {(ENDLESS, True, "clock")}
        assert fresh.restarts == 1
        assert fresh.score(late[:1])[0].verdict is Verdict.TIMED_OUT and fresh.restarts == 1
        judged = fresh.judge([(ENDLESS, "x"), (ENDLESS, "x"), ("x+1", "1+x")])
        assert [each.verdict for each in judged] == [Verdict.TIMED_OUT, Verdict.TIMED_OUT, Verdict.CORRECT]
        assert fresh.restarts == 2


def test_a_killed_worker_costs_no_verdict(pool: VerifierPool) -> None:
    pool.score(EASY[:1])
    os.kill(pool.pids[0], signal.SIGKILL)
    assert [score.verdict for score in pool.score(EASY)] == EASY_VERDICTS


def test_a_worker_killed_in_the_middle_of_a_call_costs_no_verdict(pool: VerifierPool) -> None:
    pool.score(EASY[:1])
    victim = pool.pids[0]
    killer = threading.Timer(0.02, lambda: os.kill(victim, signal.SIGKILL))
    killer.start()
    assert [score.verdict for score in pool.score(EASY * 20)] == EASY_VERDICTS * 20
    killer.join()


def test_an_item_that_kills_its_workers_is_crashed() -> None:
    with VerifierPool(seconds=1.0) as fresh:
        fresh.score(EASY[:1])
        stop = threading.Event()

        def kill_on_sight() -> None:  # kills the worker of the item, as an answer that crashes the process would
            seen: set[int] = set()
            while not stop.is_set() and len(seen) < 2:
                for pid in set(fresh.pids) - seen:
                    busy = [w for w in fresh._workers if w and w.pid == pid and w.pending]
                    if busy:
                        os.kill(pid, signal.SIGKILL)
                        seen.add(pid)
                time.sleep(0.001)

        killer = threading.Thread(target=kill_on_sight)
        killer.start()
        scores = fresh.score([(response(ENDLESS), problem("x")), *EASY[:5]])
        stop.set()
        killer.join()
        assert [score.verdict for score in scores] == [Verdict.CRASHED, *EASY_VERDICTS[:5]]
        assert fresh.restarts == 2


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel sets no such limit")
def test_a_worker_cannot_take_more_memory_than_its_limit() -> None:
    with VerifierPool(memory_mib=512) as fresh:
        fresh.score(EASY[:1])
        assert str(512 * 2**20) in Path(f"/proc/{fresh.pids[0]}/limits").read_text()
    hog = "from verifiers import worker; worker.limit_memory(512); print(worker._run_task(bytearray, [2**30])['layer'])"
    done = subprocess.run([sys.executable, "-c", hog], capture_output=True, text=True, cwd=CHECKOUT, check=True)
    assert done.stdout.strip() == "MemoryError"  # the worker survives and reports it: the item is CRASHED


@pytest.mark.timeout(60)
@pytest.mark.parametrize("size", [10, 900_000])
def test_an_item_has_a_wall_clock_where_its_worker_gets_no_processor_time(size: int) -> None:
    """A stopped worker uses no processor time and does not read: an item larger than the pipe cannot even be sent."""
    with VerifierPool(seconds=0.5) as fresh:
        fresh.score(EASY[:1])
        os.kill(fresh.pids[0], signal.SIGSTOP)
        items = [(f"<think>{'a' * size}</think> <answer>1</answer>", problem("1")), *EASY[:3]]
        verdicts = [score.verdict for score in fresh.score(items)]
        assert verdicts == [Verdict.TIMED_OUT, *EASY_VERDICTS[:3]]
        assert fresh.restarts == 1


HOSTILE = [
    "9**9**9", "9^9^9^9", "9^{9^{9^{9}}}", "10^{10^{10}}", "1e999999999", "(10!)!", "99999!", r"\binom{10^9}{10^8}",
    "9" * 50_000, "(" * 50_000, "{" * 50_000, r"\frac{" * 5_000, r"\sqrt{" * 300, "1+" * 20_000 + "1",
    ",".join("1" * 900), ",".join(map(str, range(400))),
    "__import__('os').system('touch /tmp/owned')", "exec('x')", "().__class__.__bases__", "\x00\x01\ud800", "\\" * 999,
    "$" * 999, "^" * 999, "_" * 999, r"\text{" * 200, "a" * 1_999, "\u202e42", "٤٢", "lambda: 42", "42; 42",
    "{}" * 900,
]  # fmt: skip


def test_hostile_answers_are_never_right_and_never_stop_the_pool(pool: VerifierPool) -> None:
    items = [(response(text), problem(gold)) for text in HOSTILE for gold in ("43", "x^2+1")]
    verdicts = {score.verdict for score in pool.score(items)}
    assert Verdict.CORRECT not in verdicts and Verdict.CRASHED not in verdicts
    assert [score.verdict for score in pool.score(EASY[:4])] == EASY_VERDICTS[:4]
    assert not Path("/tmp/owned").exists()


def test_hostile_responses_outside_the_form_are_survived(pool: VerifierPool) -> None:
    scores = pool.score([(text, problem("43")) for text in HOSTILE])
    assert {score.verdict for score in scores} <= {Verdict.MALFORMED, Verdict.NO_ANSWER}
    assert not any(score.lenient for score in scores)


def test_verdicts_do_not_depend_on_the_number_of_workers() -> None:
    items = [(response(text), problem("43")) for text in HOSTILE if len(text) < 100] + EASY
    results = []
    for workers in (1, 2):
        with VerifierPool(workers=workers) as fresh:
            results.append([(score.verdict, score.layer, score.reward) for score in fresh.score(items)])
    assert results[0] == results[1]


def test_threads_get_the_same_verdicts(pool: VerifierPool) -> None:
    results: dict[int, list[Verdict]] = {}
    items = [*EASY[:9], (response(r"\frac{\sqrt{2}}{2}"), problem(r"\frac{1}{\sqrt{2}}"))]

    def work(number: int) -> None:
        results[number] = [score.verdict for score in pool.score(items)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(results.values()) == [[*EASY_VERDICTS[:9], Verdict.CORRECT]] * 4


def test_vote_comparisons_run_in_the_workers(pool: VerifierPool) -> None:
    assert pool.same([("1/2", "0.5"), ("3", "4"), (ENDLESS, "x")]) == [True, False, False]
    assert pool.same([("25-3", "11*2")], verifier="countdown") == [True]


def test_a_gold_that_its_rule_cannot_use_is_a_crash_and_not_a_wrong_answer(pool: VerifierPool) -> None:
    (score,) = pool.score([(response("4*6"), problem("twenty-four", verifier="countdown"))])
    assert (score.verdict, score.layer) == (Verdict.CRASHED, "ValueError")


def test_an_unknown_rule_is_refused_before_any_worker_sees_it(pool: VerifierPool) -> None:
    with pytest.raises(ValueError, match="unknown verifier 'chess'"):
        pool.score([(response("1"), problem("1", verifier="chess"))])


def test_closing_leaves_no_worker_behind() -> None:
    with VerifierPool(workers=2) as fresh:
        fresh.score(EASY)
        pids = fresh.pids
    assert pids and not any(map(is_alive, pids))
    with pytest.raises(ValueError, match="closed"):
        fresh.score(EASY)


def test_a_worker_ends_when_its_parent_is_killed() -> None:
    script = (
        "import time; from verifiers import VerifierPool; from data import Problem\n"
        "pool = VerifierPool(); pool.score([('<think>a</think><answer>1</answer>', Problem('p','?','1','t','t'))])\n"
        "print(pool.pids[0], flush=True); time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=CHECKOUT)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    assert is_alive(worker)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert wait_until_gone(worker, seconds=20)


@pytest.mark.parametrize("end", [WorkerProcess.kill, WorkerProcess.stop])
def test_a_program_that_a_worker_has_started_ends_with_it(end: Callable[[WorkerProcess], None]) -> None:
    script = (
        "import json, subprocess, sys; own = subprocess.Popen(['sleep', '300'])\n"
        "print('{\"ready\": true}', flush=True); batch = json.loads(input())\n"
        "print(json.dumps({'token': batch['token'], 'number': 0, 'result': own.pid}), flush=True); sys.stdin.read()\n"
    )
    worker = WorkerProcess([sys.executable, "-c", script], 1.0)
    worker.send_batch("score", [0], [[]])
    event = worker.next_event()
    end(worker)
    assert event and wait_until_gone(event["result"], seconds=10)


def test_a_worker_at_work_when_its_parent_is_killed_ends_by_its_own_alarm() -> None:
    script = "from data.environments import worker; worker.ALARM_DELAY = 0\n"
    script += "from verifiers.worker import serve; serve(0.2, 1024, preload=False)"
    worker = WorkerProcess([sys.executable, "-c", script], 0.2, CHECKOUT)
    while not worker.is_ready:
        assert worker.events() is not None
    worker.send_batch("score", [0], [(response(ENDLESS), "x", "maths", "strict")])
    worker._child.stdin.close()  # no parent enforces the time limit any more: only the alarm does
    assert worker._child.wait(timeout=120) == -signal.SIGALRM
    worker.kill()


def test_workers_that_do_not_start_are_an_error_with_their_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with VerifierPool() as fresh, pytest.raises(RuntimeError, match="grading workers do not start"):
        fresh.score(EASY)


@pytest.mark.parametrize("setting", [{"workers": 0}, {"seconds": 0.0}, {"memory_mib": 64}])
def test_settings_that_cannot_work_are_refused(setting: dict) -> None:
    with pytest.raises(ValueError, match="must be at least"):
        VerifierPool(**setting)
