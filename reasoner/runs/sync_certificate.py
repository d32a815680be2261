"""The sync certificate of a run, sync.json: whether its engine takes the weights that it is sent."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from reasoner.runs.json_files import COUNT, FLAG, NUMBER, TEXT, TEXTS, is_file, read_object, write_json

_FILE = "sync.json"


@dataclass(frozen=True, slots=True)
class SyncCertificate:
    """How far the log-probabilities of an engine and of the trainer differ: mean |difference| in nats."""

    model: str  # class of the policy
    engine: str
    dtype: str  # of the engine
    lora: bool  # whether an adapter is trained
    changed: float  # after updates of all kinds of weights: the largest, where they were sent one at a time
    restored: float  # after the update back
    groups: int  # weights of one name in all layers
    unseen: tuple[str, ...]  # groups whose change moves the log-probabilities by less than the limit: nothing is shown
    limit: float

    def __str__(self) -> str:
        """One line: what was compared, and how far it differs."""
        seen = f"{self.groups - len(self.unseen)} of {self.groups}" if self.unseen else f"all {self.groups}"
        gap = max(self.changed, self.restored)
        return f"{self.engine} takes {seen} kinds of weights: {gap:.1g} nats from the trainer (at most {self.limit:g})"


_FIELDS = {
    "model": TEXT, "engine": TEXT, "dtype": TEXT, "lora": FLAG, "changed": NUMBER, "restored": NUMBER, "groups": COUNT,
    "unseen": TEXTS, "limit": NUMBER,
}  # fmt: skip


def write_certificate(run_dir: Path, certificate: SyncCertificate) -> None:
    write_json(run_dir / _FILE, asdict(certificate))


def read_certificate(run_dir: Path) -> SyncCertificate | None:
    """Read the certificate of a run; None where it has none. ValueError for a damaged file."""
    path = run_dir / _FILE
    if not is_file(path):
        return None
    stored = {name: value for name, value in read_object(path, _FIELDS).items() if name in _FIELDS}
    return SyncCertificate(**stored | {"unseen": tuple(stored["unseen"])})
