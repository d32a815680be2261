"""Resolve `--model`: the embedded base, a run, a checkpoint, a local folder, or a model of the hub."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from reasoner.models.folder import BaseModel, is_adapter, model_fingerprint, read_base
from reasoner.models.hub_download import download_model, find_in_cache
from reasoner.runs.run_dir import list_checkpoints

BASE = Path(__file__).parents[1] / "pretrain" / "model"


def resolve_model(model: str, *, runs: Path, step: str | None = None) -> Path:
    """Return the model's folder. Hub models are downloaded into the user's cache.

    `step` selects a checkpoint of a run, a number of steps or "best"; default: the last one. ValueError if there is no
    such model, naming the places that were searched.
    """
    folder = _local(model, runs, step)
    if step is not None and (folder is None or folder in (BASE, Path(model), runs / model)):
        raise ValueError(f"--step selects a checkpoint of a run, and {model!r} is no run")
    return folder or download_model(model)


def resolve_cached_model(model: str, *, runs: Path) -> Path | None:
    """Return the model's folder without downloading; None for a hub model that is not in the user's cache.

    ValueError if the hub can be reached and does not give the model.
    """
    return _local(model, runs, None) or find_in_cache(model)


def base_folder(adapter: Path) -> Path:
    """Return the folder of the model that the adapter in a folder was trained on, which may be downloaded.

    ValueError if that model is not found, or is not the one that the adapter was trained on.
    """
    try:
        return _checked_base(read_base(adapter))
    except ValueError as error:
        raise ValueError(f"the LoRA adapter in {adapter} cannot be used: {error}") from error


@cache
def _checked_base(base: BaseModel) -> Path:
    """The folder of the base, once its fingerprint is checked; that reads all of its weights."""
    there = (Path(base.folder) / "config.json").is_file()
    folder = Path(base.folder) if there else resolve_model(base.name, runs=Path("runs"))
    if (fingerprint := model_fingerprint(folder)) != base.fingerprint:
        raise ValueError(f"its base {base.name!r} has the fingerprint {base.fingerprint}, and {folder} {fingerprint}")
    return folder


def full_folder(folder: Path) -> Path:
    """Return the folder, or for an adapter the folder of its base, that holds all weights of a model."""
    while is_adapter(folder):
        folder = base_folder(folder)
    return folder


def _local(model: str, runs: Path, step: str | None) -> Path | None:
    """Return the local folder; None for a name that can only be on the hub."""
    if model == "base":
        if not (BASE / "config.json").is_file():
            raise ValueError(
                f"the embedded base is missing from {BASE}; create it with: reasoner base build --out {BASE}"
            )
        return BASE
    for folder in (Path(model), runs / model):
        if (folder / "checkpoints").is_dir():
            return _checkpoint(folder, step)
        if (folder / "config.json").is_file() and not (folder / "metrics.jsonl").exists():
            return folder
        if (folder / "metrics.jsonl").exists():
            raise ValueError(f"run {folder} has no checkpoint yet")
    if model.count("/") == 1 and not model.startswith((".", "/", "~")) and not Path(model).exists():
        return None
    raise ValueError(
        f"no model {model!r}: it is not 'base', not a run in {runs}, not a folder with a config.json, "
        "not a hub name ORG/NAME"
    )


def _checkpoint(run_dir: Path, step: str | None) -> Path:
    """Return the folder of a run's checkpoint; without `step` the last one. ValueError if it does not exist."""
    folder = run_dir / "checkpoints"
    checkpoints = {str(int(path.name.removeprefix("step-"))): path for path in list_checkpoints(run_dir)}
    if checkpoints and step is None:
        return list(checkpoints.values())[-1]
    if (folder / "best").is_dir():
        checkpoints["best"] = folder / "best"
    if not checkpoints:
        raise ValueError(f"run {run_dir} has no checkpoint yet")
    if step is None:
        raise ValueError(f"run {run_dir} has no checkpoint yet but the best one; select it by the step 'best'")
    if step not in checkpoints:
        raise ValueError(f"run {run_dir} has no checkpoint {step!r} (steps done); there are {', '.join(checkpoints)}")
    return checkpoints[step]
