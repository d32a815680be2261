"""The rollouts of each training step: which prompts, sampled by the engine, graded by the verifiers, with rewards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor
from transformers import PreTrainedModel

from data import Problem, problem_order
from reasoner.config.schema import Config
from reasoner.distributed.world import ALONE, World
from reasoner.inference.answers import AnswerLog
from reasoner.models.lora import policy_state
from reasoner.progress import Progress
from reasoner.rl.algorithms import resolve_algorithm
from reasoner.rollouts.control_rewards import ControlContext, apply_control, shuffled_answers
from reasoner.rollouts.generate import RolloutPrefetcher, generate_groups, num_repeats, sample_until_full
from reasoner.rollouts.reward_functions import RewardFunction, apply_reward_functions
from reasoner.rollouts.reward_models import Scorer, apply_reward_models
from reasoner.rollouts.seeds import replacement_seed
from reasoner.types import Engine, Prompt, RolloutGroup, SamplingParams
from verifiers import VerifierPool


@dataclass(frozen=True, slots=True)
class StepRollouts:
    """The rollouts of one training step."""

    groups: list[RolloutGroup]  # to train on
    replaced: list[RolloutGroup]  # groups that dynamic sampling replaced

    @property
    def all(self) -> list[RolloutGroup]:
        """All sampled groups, those to train on first."""
        return [*self.groups, *self.replaced]

    @property
    def num_tokens(self) -> int:
        """Number of tokens sampled."""
        return sum(group.num_tokens for group in self.all)

    @property
    def policy_version(self) -> int:
        """The version of the weights that sampled them: the number of updates before."""
        return self.groups[0].completions[0].policy_version


Weights = tuple[list[tuple[str, Tensor]], int]  # of the policy, and their version: the number of updates before


class RolloutGenerator:
    """Samples and grades rollouts: an engine, a verifier pool, and the prompts to train on.

    Which prompts a step gets, and every seed, is a function of (run seed, step), not of the ranks. Each
    rank of `world` has an engine and a pool, samples its share of the prompts, and gets the groups of all of them.
    """

    def __init__(
        self,
        engine: Engine,
        pool: VerifierPool,
        prompts: Sequence[Prompt],
        sampling: SamplingParams,
        cfg: Config,
        *,
        reward_functions: Sequence[RewardFunction] = (),
        reward_models: Mapping[str, Scorer] | None = None,
        prefetcher: RolloutPrefetcher[StepRollouts] | None = None,
        world: World = ALONE,
        eval_world: World | None = None,
        log: AnswerLog | None = None,
    ) -> None:
        """`prefetcher` is needed by prefetching() alone; its thread uses the group of `world`, which must then not be
        the trainer's. `eval_world`: the ranks of `world`, with the time limit of evaluations. `log`: the engine's, of
        answers.

        ValueError if the control wrong-gold has no other answers.
        """
        self.engine = engine
        self.pool = pool
        self.prompts = prompts
        self.sampling = sampling
        self.cfg = cfg
        self.algorithm = resolve_algorithm(cfg.algo)
        self.progress = Progress()  # shows what is sampled and graded
        self.world = world
        self.eval_world = eval_world or world
        self.log = log
        self._reward_functions = reward_functions
        self._reward_models = reward_models or {}
        self._prefetcher = prefetcher
        self._next_weights: Weights | None = None  # for the engine, before the next step that is prefetched
        self._is_asleep = False  # the engine
        self._num_rounds = cfg.algo.dynamic_sampling_max_rounds if self.algorithm.dynamic_sampling else 0
        self._problem_order = problem_order(cfg.data.train, [prompt.problem.source for prompt in prompts])
        is_shuffled = cfg.control == "wrong-gold"
        self._shuffled: Mapping[str, Problem] = shuffled_answers(prompts, cfg.seed) if is_shuffled else {}

    def generate(self, step: int) -> StepRollouts:
        """The step's rollouts: those that were prefetched, or new ones."""
        prefetched = None if self._prefetcher is None else self._prefetcher.take(step)
        return prefetched or self._generate(step)

    def _generate(self, step: int, weights: Weights | None = None, *, in_background: bool = False) -> StepRollouts:
        """New rollouts of a step, sampled with `weights` if the engine does not have them yet."""
        if weights is not None:
            self.engine.update_weights(weights[0], version=weights[1])
        rounds = [self._prompts_of_round(step, number) for number in range(1 + self._num_rounds)]
        groups, replaced = sample_until_full(
            lambda prompts: self.sample(prompts, step, in_background=in_background),
            rounds,
            dynamic_sampling=self.algorithm.dynamic_sampling,
            metric=self.algorithm.filter_metric,
        )
        return StepRollouts(groups, replaced)

    def _prompts_of_round(self, step: int, number: int) -> list[Prompt]:
        """The prompts of a step (round 0), and of each round of dynamic sampling."""
        size, seed, position = self.cfg.data.prompts_per_step, self.cfg.seed, step
        if number > 0:
            position, seed = step * self._num_rounds + number - 1, replacement_seed(seed)
        return [self.prompts[i] for i in self._problem_order(position, size, seed)]

    def sample(
        self, prompts: Sequence[Prompt], step: int, *, num_samples: int | None = None, in_background: bool = False
    ) -> list[RolloutGroup]:
        """Sample and grade a group for each prompt, with the run's rewards. Default: algo.group_size completions. A
        collective operation.
        """

        def sample_own(own: Sequence[tuple[Prompt, int]]) -> list[RolloutGroup]:
            return self._sample([prompt for prompt, _ in own], [number for _, number in own], step, num_samples)

        numbered = list(zip(prompts, num_repeats(prompts), strict=True))
        return self.world.stripe(numbered, sample_own, "the rollouts of the other ranks", tells_errors=in_background)

    def _sample(
        self, prompts: Sequence[Prompt], repeats: Sequence[int], step: int, num_samples: int | None
    ) -> list[RolloutGroup]:
        cfg = self.cfg
        sampling = self.sampling if num_samples is None else replace(self.sampling, num_samples=num_samples)
        groups = generate_groups(
            self.engine,
            self.pool,
            prompts,
            sampling,
            cfg.reward,
            run_seed=cfg.seed,
            step=step,
            progress=self.progress,
            repeats=repeats,
        )
        groups = apply_reward_functions(groups, self._reward_functions)
        if self._reward_models:
            with self.asleep():
                groups = apply_reward_models(groups, self._reward_models, cfg.reward)
        return apply_control(groups, cfg.control, ControlContext(self.pool, self._shuffled, cfg.seed, step))

    @contextmanager
    def prefetching(self, steps: range) -> Iterator[None]:
        """Generate later steps' rollouts in the background, with the present weights, from the start of the block on;
        those of `steps` that were started earlier have the weights of then. Without any the engine sleeps.
        """
        assert self._prefetcher is not None, "prefetching without a prefetcher"
        for step in steps[len(self._prefetcher.steps) :]:
            weights, self._next_weights = self._next_weights, None
            self._prefetcher.start(step, partial(self._generate, step, weights, in_background=True))
        if not self._prefetcher.steps:
            self.sleep()
        yield

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """Release the engine's memory but its weights for the length of the block, if it can."""
        self.sleep(keeps_weights=True)
        yield
        self._wake_up()

    def sleep(self, *, keeps_weights: bool = False) -> None:
        """Release the engine's memory until the next update_weights(), if it can."""
        if not self._is_asleep:
            self.engine.sleep(keeps_weights=keeps_weights)
        self._is_asleep = True

    def _wake_up(self) -> None:
        if self._is_asleep:
            self.engine.wake_up()
        self._is_asleep = False

    def update_weights(self, policy: PreTrainedModel, *, version: int, is_deferred: bool = False) -> None:
        """Replace the engine's weights after the background generation has ended; an engine that sleeps wakes up.
        `is_deferred`: return at once, and replace them, by a copy in the computer's memory, before the next step that
        is prefetched. A collective operation if the policy is sharded.
        """
        named = policy_state(policy, sends_adapter=self.engine.accepts_adapter)
        if is_deferred:
            is_sender = self.world.is_first or self.engine.name != "remote"  # servers get theirs from the first rank
            copies = [(name, tensor.detach().to("cpu", copy=True)) for name, tensor in named if is_sender]
            self._next_weights = (copies, version)
            return
        if self._prefetcher is not None:
            self._prefetcher.wait()
        self._next_weights = None
        self._wake_up()
        self.engine.update_weights(named, version=version)
