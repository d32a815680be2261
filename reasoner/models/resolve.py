"""What `--model` names: the embedded base, a run, a checkpoint, a local folder, or a model of the hub."""

from __future__ import annotations

from pathlib import Path

BASE = Path(__file__).parents[1] / "pretrain" / "model"
_HUB_FILES = ["*.json", "*.safetensors", "tokenizer*", "*.txt", "*.model"]


def locate(model: str, *, runs: Path, step: str | None = None) -> Path:
    """The model's folder; hub names are downloaded into the user's cache.

    `step` picks a checkpoint of a run, a number or "best"; without it a run means its last one. ValueError saying what
    was looked for.
    """
    folder = _local(model, runs, step)
    if step is not None and (folder is None or folder in (BASE, Path(model), runs / model)):
        raise ValueError(f"--step picks a checkpoint of a run, and {model!r} is no run")
    return folder or _download(model)


def locate_cached(model: str, *, runs: Path) -> Path | None:
    """The model's folder without a download: None for a hub model that is not in the user's cache. ValueError for one
    that the hub does not have either, where the hub can be asked.
    """
    return _local(model, runs, None) or _cached(model)


def _local(model: str, runs: Path, step: str | None) -> Path | None:
    """None for what can only be a hub name."""
    if model == "base":
        if not (BASE / "config.json").is_file():
            raise ValueError(
                f"the embedded base is missing from {BASE}; make it with: reasoner base build --out {BASE}"
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
    folder = run_dir / "checkpoints"
    found = {str(int(path.name.removeprefix("step-"))): path for path in sorted(folder.glob("step-??????"))}
    if not found:
        raise ValueError(f"run {run_dir} has no checkpoint yet")
    if step is None:
        return list(found.values())[-1]
    if (folder / "best").is_dir():
        found["best"] = folder / "best"
    if step not in found:
        raise ValueError(f"run {run_dir} has no checkpoint {step!r} (steps done); there are {', '.join(found)}")
    return found[step]


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError
    from requests import exceptions

    try:
        return Path(snapshot_download(name, allow_patterns=_HUB_FILES))
    except RepositoryNotFoundError as error:
        raise ValueError(f"no model {name!r} on the hub, nor a run or a folder of that name") from error
    except (LocalEntryNotFoundError, HfHubHTTPError, exceptions.RequestException, OSError) as error:
        raise ValueError(
            f"model {name!r} is neither a run nor a folder, and the hub cannot be reached to download it; "
            "name a local folder"
        ) from error


def _cached(name: str) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import DryRunError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=_HUB_FILES, local_files_only=True))
    except LocalEntryNotFoundError:
        pass
    try:
        snapshot_download(name, allow_patterns=_HUB_FILES, dry_run=True)
    except DryRunError as error:  # also where the hub cannot be asked
        if isinstance(error.__cause__, RepositoryNotFoundError):
            raise ValueError(f"no model {name!r} on the hub, nor a run or a folder of that name") from error
    return None
