"""Weights in a file: the trainer writes a version, and has servers read it that see the same folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from reasoner.inference.server_client import Post

_IN_MEMORY = Path("/dev/shm")
_PREFIX = f"reasoner-weights-{socket.gethostname()}-"  # then a random part
_LOCK = "lock"  # a file in the folder, locked while its trainer lives: containers may share a host name and process ids


@dataclass
class Holder:
    """The trainer whose weights a server takes: the last one that asked, while it lives."""

    folder: str = ""  # of its weights
    run: str = ""  # its name

    def claim(self, folder: str, run: str) -> str:
        """Be held by the trainer with the folder. Returns the name of another one that lives, which stays the holder;
        without locks (some network file systems) none is seen to live.
        """
        try:
            if self.folder not in ("", folder):
                with (Path(self.folder) / _LOCK).open("rb") as lock:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return self.run
        except OSError:
            pass
        self.folder, self.run = folder, run
        return ""


class WeightFolder:
    """The folder of a trainer's weight files. It holds the last version only, and close() removes it."""

    def __init__(self, parent: str = "", run: str = "") -> None:
        """Make a folder for the weights of a run in `parent`; by default in memory (/dev/shm), or where that is missing
        in the folder of temporary files. Folders that ended trainers of this machine left there are removed. ValueError
        if it cannot be written.
        """
        home = Path(parent) if parent else _IN_MEMORY if _IN_MEMORY.is_dir() else Path(tempfile.gettempdir())
        try:
            _remove_abandoned(home)
            self.path, self._lock = _new_folder(home)
        except OSError as error:
            raise ValueError(f"the folder for weights {home} cannot be written: {error.strerror}") from error
        if parent:
            self.path.chmod(0o755)  # a folder of several machines, where servers may run as another user
        self.run = f"{run or 'a run'} (process {os.getpid()} of {socket.gethostname()})"
        self.file: Path | None = None  # VERSION.safetensors, of the last version

    def write(self, weights: Iterable[tuple[str, Tensor]], version: str, dtype: torch.dtype) -> Path:
        """Write a version under a new name; floating-point tensors in the precision `dtype`, to which each is converted
        before the next is taken. The former is removed.

        ValueError where there is no room for it, beside the former one.
        """
        tensors, storages = {}, set()
        for name, tensor in weights:
            tensor = tensor.detach().to("cpu", dtype if tensor.is_floating_point() else tensor.dtype).contiguous()
            if tensor.data_ptr() in storages:  # tied: safetensors refuses tensors that share memory
                tensor = tensor.clone()
            storages.add(tensor.data_ptr())
            tensors[name] = tensor
        path = self.path / f"{version}.safetensors"
        partial = path.with_suffix(".partial")
        try:
            save_file(tensors, partial, metadata={"version": version})
            partial.chmod(0o644)
            partial.rename(path)
        except (OSError, SafetensorError) as error:
            partial.unlink(missing_ok=True)
            num_mib = sum(tensor.nbytes for tensor in tensors.values()) / 2**20
            raise ValueError(
                f"the weights ({num_mib:,.0f} MiB) cannot be written to {self.path}: {error}. There must be room for "
                "two versions; engine.transfer_dir names another folder"
            ) from error
        former, self.file = self.file, path
        if former is not None:
            former.unlink(missing_ok=True)
        return path

    async def send(self, post: Post) -> None:
        """Load the last version into a server that is paused; the server names it afterwards (/weight_info)."""
        assert self.file is not None, "a file is sent before it is written"
        version = self.file.stem
        file = {"path": str(self.file), "version": version}
        await post("/collective_rpc", {"method": "load_weight_file", "kwargs": file})
        await post("/update_weight_version", {"new_version": version})

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


@contextmanager
def open_weights(path: str, version: str) -> Iterator[Iterator[tuple[str, Tensor]]]:
    """Open a file of weights for its (name, tensor). ValueError where it is not whole, or not the version."""
    try:
        with safe_open(path, framework="pt") as tensors:
            names, own = list(tensors.keys()), (tensors.metadata() or {}).get("version")
            if own != version:
                raise ValueError(f"{path} holds the weights {own!r}; the trainer wrote {version!r}")
            yield ((name, tensors.get_tensor(name)) for name in names)
    except (OSError, SafetensorError) as error:
        raise ValueError(
            f"the weights in {path} cannot be read: {error}. Trainer and server must see the same folder "
            "(engine.transfer_dir)"
        ) from error


def _new_folder(parent: Path) -> tuple[Path, IO[bytes]]:
    """A new folder, and its lock. It gets its name when it is locked."""
    unnamed = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=parent))
    lock = (unnamed / _LOCK).open("wb")
    with suppress(OSError):  # a file system without locks: then nobody can lock it to remove it
        fcntl.flock(lock, fcntl.LOCK_EX)
    return unnamed.rename(parent / unnamed.name.removeprefix(".")), lock


def _remove_abandoned(parent: Path) -> None:
    """Remove the folders of trainers of this machine that are no longer alive: those whose lock is free."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError), (folder / _LOCK).open("rb+") as lock:  # locked, or of another user
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
