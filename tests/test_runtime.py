import gc
import subprocess
import sys

import pytest

from reasoner.runtime import asleep


@pytest.fixture(autouse=True)
def unfrozen():
    yield
    gc.unfreeze()


def test_what_was_made_while_it_slept_is_looked_through_no_more():
    gc.unfreeze()
    with asleep():
        assert not gc.isenabled()
        kept = [[] for _ in range(1000)]
    assert gc.isenabled() and gc.get_freeze_count() >= len(kept)


def test_it_wakes_after_an_error_and_stays_asleep_where_it_was():
    with pytest.raises(ImportError), asleep():
        raise ImportError
    assert gc.isenabled()
    gc.disable()
    try:
        with asleep():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_process_that_imported_the_engine_ends_without_notes_of_leaks():
    """Modules that are still frozen at the end are never freed, and vLLM's bindings report them on standard error."""
    pytest.importorskip("vllm")
    script = "from reasoner.runtime import asleep\nwith asleep():\n    from vllm import LLM\nprint('imported')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "imported"
    assert "leaked" not in done.stderr
