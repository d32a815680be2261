"""`reasoner.train`: train a model from Python, with your own problems and reward functions."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data import Problem, load
from data.files import jsonl_of, write_jsonl, written_spec
from data.related_sets import own_sets
from reasoner.api.calls import ARGUMENTS, python_call
from reasoner.api.inputs import Data, model_folder, problems_in_memory
from reasoner.config.presets import is_same_preset
from reasoner.config.resolve import RunSettings, check_types, with_values
from reasoner.config.schema import Config
from reasoner.config.stages import STAGES
from reasoner.distributed.world import num_launched
from reasoner.models.folder import model_fingerprint
from reasoner.rollouts.reward_functions import (
    RewardCallable,
    RewardFunction,
    check_columns,
    load_reward_functions,
    reward_functions_of,
)
from reasoner.runs import rollouts as store
from reasoner.runs.json_files import read_object
from reasoner.runs.metrics import read_metrics
from reasoner.runs.run_dir import INITIAL_MODEL, PROBLEM_FILES, find_run, list_checkpoints, read_settings
from reasoner.runs.run_state import run_state
from reasoner.trainer.resolve_run import resolve_new_run, resolve_resumed_run

if TYPE_CHECKING:
    import pandas
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_FILES = dict(zip(("data.train", "validation.data"), PROBLEM_FILES, strict=True))
_NO_ROWS: Mapping[str, list[Problem]] = {}
_FREE = {"algo.name", "steps", "seed"}  # may be in `settings` where they are not an argument of the call


@dataclass(frozen=True, slots=True)
class Run:
    """A run in its folder, finished or not. `Run(Path("runs/first"))` opens an earlier one.

    Everything is read from the folder when it is asked for, so the values of a run in progress are those of now.
    """

    folder: Path

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.folder.name

    @property
    def model(self) -> str:
        """The newest checkpoint, as a model that `evaluate` and `train` accept. ValueError where there is none yet."""
        checkpoints = list_checkpoints(self.folder)
        if not checkpoints:
            raise ValueError(f"run {self.folder} has no checkpoint yet")
        return str(checkpoints[-1])

    @property
    def best_model(self) -> str:
        """The checkpoint with the highest pass@1 on the validation problems; `model` for a run without validation."""
        best = self.folder / "checkpoints" / "best"
        return str(best) if best.is_dir() else self.model

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting of the run by dotted key (docs/config.md)."""
        settings: dict[str, Any] = read_settings(self.folder)["config"]
        return settings

    @property
    def state(self) -> str:
        """live, starting, finished, trained, stopped or imported (docs/DASHBOARD.md)."""
        return run_state(self.folder, self.settings, (self.metrics or [{}])[-1])

    @property
    def metrics(self) -> list[dict[str, float]]:
        """The metrics of each step, in order: `reasoner.runs.metric_names.METRICS` has their meanings."""
        return read_metrics(self.folder)

    @property
    def report(self) -> dict[str, Any] | None:
        """The figures on the held-out problems, "before" and "after" training; None where the run has none (yet)."""
        return read_object(self.folder / "report.json", allow_nan=True) or None

    def rollouts(self, step: int | None = None) -> pandas.DataFrame:
        """The completions of a step (0 is the first, -1 the last), or of all: one row each, with question, completion,
        verdict, reward, advantage and more. `rewards` has the parts of the reward by name, without their weights.
        ValueError for a step without rollouts.
        """
        import pandas

        steps = store.shard_steps(self.folder)
        if step is not None:
            steps = [steps[step] if -len(steps) <= step < 0 else step]
        rows = [row for one in steps for row in store.read(self.folder, one)]
        return pandas.DataFrame([row | {"rewards": dict(row["rewards"] or [])} for row in rows])

    def to_pandas(self) -> pandas.DataFrame:
        """The metrics as a pandas DataFrame with one row per step."""
        import pandas

        return pandas.DataFrame(self.metrics)


@python_call
def train(
    model: str | PreTrainedModel = "base",
    data: Data | None = None,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    reward_functions: Sequence[RewardCallable | tuple[RewardCallable, float]] = (),
    callbacks: Sequence[object] = (),
    algo: str | None = None,
    steps: int | None = None,
    seed: int | None = None,
    preset: str | None = None,
    name: str | None = None,
    runs: str | Path = "runs",
    resume: bool = False,
    validation_data: Data | None = None,
    settings: Mapping[str, object] | None = None,
) -> Run:
    """Train a model by reinforcement learning with verifiable rewards, as `reasoner train` does.

    Args:
        model: "base" (the embedded model), a run, a checkpoint, a model folder, a hub name, or a model of transformers
            in memory. That is written to the folder initial_model of the run, and stays as it is itself.
        data: The training problems: a name as --data takes it (docs/DATA.md), or rows in memory, such as a list of
            `Problem` or a `datasets.Dataset` with the columns question and answer. Rows are written to problems.jsonl
            in the run folder. Default: that of the preset.
        tokenizer: That of a model in memory.
        reward_functions: Functions, or (function, weight) pairs, whose values are added to the graded reward (settings
            `reward.*`). A function is called with keyword arguments as TRL does it: `completions`, `prompts`,
            `completion_ids`, and every column of the problems, each a list with one entry per completion. It returns a
            list of as many numbers; None means that it does not apply to a completion.
        callbacks: Objects with some of the methods of transformers' TrainerCallback, called as TRL does it
            (docs/PYTHON_API.md#callbacks). `control.should_training_stop = True` ends the training after the step.
        algo: The algorithm, a row of the table in docs/ALGORITHMS.md. Default: that of the preset, else grpo.
        steps: Number of training steps in all.
        seed: Seed of the run.
        preset: Defaults for a size of model: base, smollm-135m, qwen2.5-0.5b, qwen2.5-1.5b, qwen2.5-1.5b-gsm8k,
            qwen2.5-math-1.5b or qwen2.5-7b; for another machine than this one followed by @cpu, @24gb, @80gb or
            @141gb. Default: the one that fits.
        name: Name of the run folder. Default: MODEL-ALGORITHM-MMDD-HHMMSS.
        runs: Folder that holds the run folders.
        resume: Continue the run `name` from its last checkpoint. The same data and reward functions must be given;
            of the settings, steps and those of a run's surroundings may change.
        validation_data: Problems of the validation during training, in the forms of `data`.
        settings: Any other settings by dotted key (docs/config.md), such as {"optim.lr": 1e-5}.

    Returns:
        The finished run.

    Raises:
        ValueError: An argument cannot be used; the message names the value and those that can.
        RuntimeError: Training failed after it had started; `resume=True` continues it.
        KeyboardInterrupt: Training was interrupted; a checkpoint was saved first.

    Progress is printed on standard error, the table of held-out results on standard output. PyTorch is set to
    deterministic algorithms, in this process and beyond the call.

    Example:
        >>> def brevity(completions, **columns):
        ...     return [-len(completion) / 1000 for completion in completions]
        >>> problems = [Problem("sum", "What is 12 + 30?", "42"), Problem("product", "What is 6 * 7?", "42")]
        >>> run = train("base", problems, reward_functions=[brevity], algo="dr_grpo", steps=20)
        >>> run.metrics[-1]["reward/mean"]
    """
    functions = reward_functions_of(reward_functions)
    sources = {"data.train": data, "validation.data": validation_data}
    specs = {key: source if isinstance(source, str | Path) else None for key, source in sources.items()}
    named = model if isinstance(model, str | Path) else None
    arguments = {"model": named, "algo.name": algo, "steps": steps, "seed": seed, **specs}
    values = call_settings(settings or {}, arguments)
    rows = {
        key: problems_in_memory(source, source=Path(_FILES[key]).stem, argument=ARGUMENTS[key])
        for key, source in sources.items()
        if source is not None and specs[key] is None
    }
    call = RunCall("train", "rl", name, Path(runs), preset)
    with model_folder(model, tokenizer) as folder:
        if resume:
            resolved, run_dir = call.resume(values, rows, functions, folder)
        else:
            resolved, run_dir = call.start(values, rows, folder)
        cfg = resolved.config
        if functions and cfg.control:
            raise ValueError(f"control is {cfg.control!r}: it replaces all rewards, so reward_functions have no effect")
        memory_mib = cfg.verify.memory_mib
        own = {one.name for one in load_reward_functions(cfg.reward.functions)}
        if shared := [one.name for one in functions if one.name in own]:
            raise ValueError(f"reward_functions and reward.functions both have {shared[0]!r}; rename one of them")
        check_columns(functions, lambda: rows.get("data.train") or load(cfg.data.train, memory_mib=memory_mib))
        call.check_single_process(cfg)
        with nullcontext(resolved) if resume else _inputs_in_folder(call, resolved, run_dir, rows, folder) as resolved:
            return call.run(resolved, run_dir, callbacks, resume=resume, reward_functions=functions)


def call_settings(settings: Mapping[str, object], arguments: Mapping[str, object]) -> dict[str, object]:
    """The settings of a call by dotted key: `settings`, and the arguments that are not None, nor the default model: a
    run that is resumed keeps its own. ValueError for one that is unknown, of a wrong type, or in `settings` where it is
    an argument.
    """
    arguments = {key: None if (key, one) == ("model", "base") else one for key, one in arguments.items()}
    check_types(settings, Path("settings"))
    own = {key: str(one) if isinstance(one, Path) else one for key, one in arguments.items() if one is not None}
    check_types(own, Path("the arguments"))
    for key in settings:
        if key in own or key in {*arguments, "run.name", "run.dir"} - _FREE:
            raise ValueError(f"settings has {key!r}; give it as the argument {ARGUMENTS.get(key, key)}")
    return {**settings, **own}


@dataclass(frozen=True, slots=True)
class RunCall:
    """A call of a function of the API that starts or resumes a run of a stage in this process."""

    function: str
    stage: str
    name: str | None
    runs: Path
    preset: str | None

    @property
    def origin(self) -> str:
        """The origin of the settings in config.json."""
        return f"reasoner.{self.function}"

    def start(
        self, values: Mapping[str, object], rows: Mapping[str, list[Problem]] = _NO_ROWS, folder: Path | None = None
    ) -> tuple[RunSettings, Path]:
        """The settings and the folder of a new run, whose inputs in memory are named by the files they will be in."""
        values = {**values, "run.dir": str(self.runs)} | ({} if self.name is None else {"run.name": self.name})
        values |= {} if folder is None else {"model": str(folder)}
        options: dict[str, Any] = {"origin": self.origin, "preset": self.preset, "stage": self.stage}
        resolved, run_dir = resolve_new_run(values, **options)
        if rows:
            files = {key: written_spec(run_dir / _FILES[key], problems) for key, problems in rows.items()}
            resolved, run_dir = resolve_new_run({**values, **files, "run.name": run_dir.name}, **options)
        return resolved, run_dir

    def resume(
        self,
        values: Mapping[str, object],
        rows: Mapping[str, list[Problem]] = _NO_ROWS,
        functions: Sequence[RewardFunction] = (),
        folder: Path | None = None,
    ) -> tuple[RunSettings, Path]:
        """The settings and the folder of a run to resume. Arguments may be repeated as they were."""
        if self.name is None:
            raise ValueError("resume is True and name is None; name is needed: that of the run to resume")
        run_dir = find_run(self.name, self.runs)
        before = read_settings(run_dir)
        stored, origins = before["config"], before.get("origin", {}).values()
        presets = {origin.removeprefix("preset ") for origin in origins if origin.startswith("preset ")}
        if self.preset is not None and not any(is_same_preset(preset, self.preset) for preset in presets):
            raise ValueError(f"preset is {self.preset!r}; it cannot change when a run is resumed")
        initial = run_dir / INITIAL_MODEL
        if folder is not None and not (initial.is_dir() and model_fingerprint(initial) == model_fingerprint(folder)):
            raise ValueError(f"model differs from the one that {run_dir} was started with; name none to continue it")
        for key, problems in rows.items():
            file = run_dir / _FILES[key]
            if not file.is_file() or file.read_text("utf-8") != jsonl_of(problems):
                raise ValueError(f"{ARGUMENTS[key]} differs from the problems that {run_dir} was started with")
        named = {key: str(values[key]) for key in _FILES if key in values}
        if (own := own_sets(named.get("data.train", ""))) and own.train == stored["data.train"]:
            named["data.train"] = own.train
        values = {**values, **named}
        changes = {key: value for key, value in values.items() if key not in stored or stored[key] != value}
        options: dict[str, Any] = {"origin": self.origin, "runs": self.runs, "stage": self.stage}
        weights = {function.name: function.weight for function in functions}
        return resolve_resumed_run(self.name, changes, reward_functions=weights, **options)

    def check_single_process(self, cfg: Config) -> None:
        """ValueError where the call asks for several processes, or stands in one of several."""
        if (processes := max(num_launched(), cfg.processes)) > 1:
            raise ValueError(
                f"{self.origin}() is one process, not {processes}: use reasoner {STAGES[cfg.stage].command} "
                f"--processes {processes}{' --reward.functions FILE.py:function' * (cfg.stage == 'rl')}"
            )

    def run(
        self, resolved: RunSettings, run_dir: Path, callbacks: Sequence[object], *, resume: bool, **options: Any
    ) -> Run:
        """Check what can be checked without torch, and train in this process. `options`: those of run_stage. ValueError
        for an object that is no callback.
        """
        from reasoner.trainer.preflight import preflight

        preflight(resolved.config, run_dir)
        from reasoner.trainer.callbacks import Callbacks
        from reasoner.trainer.run_stage import run_stage

        options["callbacks"] = Callbacks(callbacks)
        with _interruptible(run_dir, self.function):
            run_stage(resolved, run_dir, resuming=resume, **options)
        return Run(run_dir)


@contextmanager
def _interruptible(run_dir: Path, function: str) -> Iterator[None]:
    """A block that trains: KeyboardInterrupt for a signal, and errors that say how to go on with `function`."""
    from reasoner.distributed.world import RunInterrupt

    hint = f"continue it with {function}(name={run_dir.name!r}, resume=True, ...)"
    try:
        yield
    except RunInterrupt as interrupt:
        raise KeyboardInterrupt(f"{interrupt}; {hint}") from None
    except (OSError, MemoryError, RuntimeError) as error:
        if (run_dir / "config.json").is_file():
            error.add_note(f"What was complete is kept; {hint}")
        raise


@contextmanager
def _inputs_in_folder(
    call: RunCall, resolved: RunSettings, run_dir: Path, rows: Mapping[str, list[Problem]], folder: Path | None
) -> Iterator[RunSettings]:
    """A block that trains with the problems and the model of `folder` in the run folder, and with the settings that
    name them there. They are removed where it fails before the run has its settings, so that its name stays free.
    """
    model, files = run_dir / INITIAL_MODEL, {run_dir / _FILES[key]: problems for key, problems in rows.items()}
    present = {path for path in (run_dir, model, *files) if path.exists()}  # somebody else's, which stay
    try:
        for file, problems in files.items():
            write_jsonl(file, problems)
        if folder is not None:
            shutil.copytree(folder, model)
            resolved = with_values(resolved, {"model": str(model)}, origin=call.origin)
        yield resolved
    except BaseException:
        if not (run_dir / "config.json").is_file():
            for file in files.keys() - present:
                file.unlink(missing_ok=True)
            if model not in present:
                shutil.rmtree(model, ignore_errors=True)
            if run_dir not in present:
                with suppress(OSError):  # it holds something else
                    run_dir.rmdir()
        raise
