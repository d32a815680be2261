"""The import of rollouts of another system."""

import pytest

from reasoner.runs import rollouts as store
from reasoner.runs.importers import import_run
from reasoner.runs.metrics import read_metrics


@pytest.fixture
def imported(tmp_path):
    """Imports the folder `dump` and gives back the run folder."""

    def run(system, name="run"):
        rollouts = import_run(system, tmp_path / "dump", tmp_path / "runs" / name)
        steps = [line["step"] for line in read_metrics(tmp_path / "runs" / name)]
        assert rollouts == sum(len(store.read(tmp_path / "runs" / name, step)) for step in steps)
        assert [path.name for path in (tmp_path / "runs").iterdir()] == [name]
        return tmp_path / "runs" / name

    return run
