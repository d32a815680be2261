"""Generate graded groups of completions for training, and replace those without variance (dynamic sampling); prefetch
those of later steps.

The seed of a completion is a function of (run seed, step, problem, sample): batching, other prompts and the number of
samples do not change it. Where a step asks a problem again, the samples go on where the group before ended.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import count
from typing import Generic, TypeVar

from reasoner.progress import Progress, SampleCount
from reasoner.rollouts.seeds import sample_seeds
from reasoner.types import Completion, Engine, Prompt, RolloutGroup, SamplingParams
from verifiers import RewardWeights, Score, VerifierPool


def generate_groups(
    engine: Engine,
    pool: VerifierPool,
    prompts: Sequence[Prompt],
    sampling: SamplingParams,
    weights: RewardWeights,
    *,
    run_seed: int,
    step: int | str,
    progress: Progress | None = None,
    repeats: Sequence[int] | None = None,
) -> list[RolloutGroup]:
    """Sample and grade a group of `sampling.num_samples` completions for each prompt, in order.

    A completion's seed is a function of (run_seed, step, problem, sample), so more samples of the same step extend the
    earlier ones. `repeats`: num_repeats() of the step's prompts, where these are a part of them. Prefill and completion
    are graded together; finished groups are graded while others are sampled.
    """
    group_size, progress = sampling.num_samples, progress or Progress()
    seeds = [
        sample_seeds(run_seed, step, prompt.problem.id, group_size, first=number * group_size)
        for prompt, number in zip(prompts, num_repeats(prompts) if repeats is None else repeats, strict=True)
    ]
    grading: dict[int, Future[list[Score]]] = {}
    total, num_graded = len(prompts) * group_size, count(group_size, group_size)
    samples = SampleCount(progress, total)
    with ThreadPoolExecutor(1) as grader:

        def grade(place: int, completions: tuple[Completion, ...]) -> None:
            prompt = prompts[place]
            rows = [(prompt.prefill + completion.own_text, prompt.problem) for completion in completions]
            grading[place] = grader.submit(
                pool.score,
                rows,
                weights,
                extract=prompt.extract,
                tokens=[completion.num_tokens for completion in completions],
                max_tokens=sampling.max_tokens,
                tool_calls=[one.call_errors.count(False) for one in completions],
                states=[one.state for one in completions],
            )
            grading[place].add_done_callback(lambda _: progress.count("graded", next(num_graded), total))

        try:
            sampled = engine.generate(prompts, sampling, seeds, grade, samples.on_decode_step)
            samples.add(total, sampled=total, tokens=sum(own.num_tokens for group in sampled for own in group))
            scores = [grading[place].result() for place in range(len(prompts))]
        except BaseException:
            grader.shutdown(cancel_futures=True)
            raise
    return [
        RolloutGroup(prompt, own, tuple(graded)) for prompt, own, graded in zip(prompts, sampled, scores, strict=True)
    ]


def num_repeats(prompts: Sequence[Prompt]) -> list[int]:
    """For each prompt the number of earlier ones with the same problem: where a step has more prompts than there are
    problems, its groups of one problem must not have the same seeds.
    """
    seen: Counter[str] = Counter()
    numbers = []
    for prompt in prompts:
        numbers.append(seen[prompt.problem.id])
        seen[prompt.problem.id] += 1
    return numbers


def sample_until_full(
    sample: Callable[[Sequence[Prompt]], list[RolloutGroup]],
    rounds: Sequence[Sequence[Prompt]],
    *,
    dynamic_sampling: bool,
    metric: str = "reward",
) -> tuple[list[RolloutGroup], list[RolloutGroup]]:
    """Generate groups round by round. Returns (the groups to train on, the filtered groups that were replaced).

    Without `dynamic_sampling` only the first round is generated and returned. With it, later rounds replace the groups
    that the metric of algo.filter_metric leaves out, until there are as many others as the first round has prompts
    (DAPO's dynamic sampling: Yu et al. 2025, eq. 11), or the rounds are used up. If all groups are left out, the first
    ones are returned. No prompt is used twice.
    """
    groups = sample(rounds[0])
    if not dynamic_sampling:
        return groups, []
    num_groups, used = len(groups), {prompt.problem.id for prompt in rounds[0]}
    for prompts in rounds[1:]:
        missing = num_groups - sum(not group.is_filtered(metric) for group in groups)
        more = [prompt for prompt in prompts if prompt.problem.id not in used][:missing]
        if missing <= 0 or not more:
            break
        used |= {prompt.problem.id for prompt in more}
        groups += sample(more)
    varied = [group for group in groups if not group.is_filtered(metric)]
    filtered = [group for group in groups if group.is_filtered(metric)]
    return (varied, filtered) if varied else (filtered[:num_groups], filtered[num_groups:])


Rollouts = TypeVar("Rollouts")


class RolloutPrefetcher(Generic[Rollouts]):
    """Generates the rollouts of later steps in a thread while a step trains, with weights from before its update
    (Noukhovitch et al. 2024, "Asynchronous RLHF"), in the order of their start(). A context manager; on exit it waits
    for the generation that is running.
    """

    def __init__(self, set_up_thread: Callable[[], object] | None = None) -> None:
        """`set_up_thread` is called once, in the thread, before the first generation."""
        self._pending: deque[tuple[int, Future[Rollouts]]] = deque()  # in the order of steps; not taken yet
        self._thread = ThreadPoolExecutor(1, initializer=set_up_thread)

    @property
    def steps(self) -> list[int]:
        """The steps that have been started and not taken yet."""
        return [step for step, _ in self._pending]

    def start(self, step: int, generate: Callable[[], Rollouts]) -> None:
        """Generate the step's rollouts in the background, after those of the steps before. Fails as they do."""
        previous = self._pending[-1][1] if self._pending else None

        def generate_next() -> Rollouts:
            if previous is not None:
                previous.result()
            return generate()

        self._pending.append((step, self._thread.submit(generate_next)))

    def wait(self) -> None:
        """Wait for all steps that have been started, after which the engine's weights may be replaced."""
        wait([future for _, future in self._pending])

    def take(self, step: int) -> Rollouts | None:
        """The step's rollouts. None, and no step is left, if another step comes next or none."""
        if self.steps[:1] != [step]:
            self._pending.clear()
            return None
        return self._pending.popleft()[1].result()

    def __enter__(self) -> RolloutPrefetcher[Rollouts]:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)
