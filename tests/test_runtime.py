import gc
import subprocess
import sys

import pytest

from reasoner.runtime import gc_paused


@pytest.fixture(autouse=True)
def unfrozen():
    yield
    gc.unfreeze()


def test_gc_paused_disables_collector_and_freezes_new_objects():
    gc.unfreeze()
    with gc_paused():
        assert not gc.isenabled()
        objects = [[] for _ in range(1000)]
    assert gc.isenabled() and gc.get_freeze_count() >= len(objects)


def test_gc_paused_restores_collector_state_after_error():
    with pytest.raises(ImportError), gc_paused():
        raise ImportError
    assert gc.isenabled()
    gc.disable()
    try:
        with gc_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_process_with_vllm_import_ends_without_leak_reports():
    """Modules that are still frozen at the end are never freed, and vLLM's bindings report them on standard error."""
    pytest.importorskip("vllm")
    script = "from reasoner.runtime import gc_paused\nwith gc_paused():\n    from vllm import LLM\nprint('imported')"
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert process.stdout.splitlines()[-1] == "imported"
    assert "leaked" not in process.stderr
