import gc
import os
import platform
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from reasoner.runtime import cuda_context, deterministic_kernels, gc_paused, gpu_memory, has_gpu, setup_torch
from reasoner.trainer.train import train_step
from tests.fixtures.toys import config, make_trainer, random_groups


def test_gc_paused_disables_collector_and_freezes_new_objects():
    num_frozen = gc.get_freeze_count()
    with gc_paused():
        assert not gc.isenabled()
        objects = [[] for _ in range(1000)]
    assert gc.isenabled() and gc.get_freeze_count() >= num_frozen + len(objects)


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


@pytest.mark.slow
def test_process_with_vllm_import_ends_without_leak_reports():
    """Modules that are still frozen at the end are never freed, and vLLM's bindings report them on standard error."""
    pytest.importorskip("vllm")
    script = "from reasoner.runtime import gc_paused\nwith gc_paused():\n    from vllm import LLM\nprint('imported')"
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert process.stdout.splitlines()[-1] == "imported"
    assert "leaked" not in process.stderr


@pytest.mark.parametrize(
    ("files", "expected"),
    [([], False), (["nvidia0"], True), (["nvidia1"], True), (["nvidiactl", "nvidia-uvm"], False), (["driver"], True)],
)
def test_has_gpu_needs_a_numbered_device_file_or_the_driver_of_windows_subsystem_for_linux(tmp_path, files, expected):
    for name in files:
        (tmp_path / name).touch()
    assert has_gpu(tmp_path, tmp_path / "driver") == expected


@pytest.mark.parametrize(("visible", "expected"), [("", False), ("-1", False), ("0", True), ("1,0", True)])
def test_has_gpu_respects_what_cuda_visible_devices_hides(tmp_path, monkeypatch, visible, expected):
    (tmp_path / "nvidia0").touch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert has_gpu(tmp_path) == expected


@pytest.mark.slow  # what it sets in any process: below
def test_setup_torch_with_a_gpu_trains_on_it_and_warns_and_large_tensors_begin_at_a_page():
    """In a process of its own, with a GPU by its word; it warns of kernels that are not deterministic."""
    script = """
import os, torch
torch.cuda.is_available = lambda: True
from reasoner.runtime import set_environment, setup_torch
print(setup_torch(threads=1, seed=0), os.environ["CUBLAS_WORKSPACE_CONFIG"])
print(torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled())
set_environment()
print(all(torch.empty(2**19 + i).data_ptr() % 4096 == 0 for i in range(8)))
"""
    env = {name: value for name, value in os.environ.items() if name != "THP_MEM_ALLOC_ENABLE"}
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env)
    device, determinism, is_aligned = process.stdout.splitlines()
    assert (device, determinism) == ("cuda :4096:8", "True True")
    assert is_aligned == "True" or sys.platform != "linux"  # torch does this on Linux alone


@pytest.fixture
def determinism_is_a_wish():
    """torch's state as setup_torch() leaves it on a GPU."""
    was = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(was[0], warn_only=was[1])


@pytest.mark.parametrize("is_required", [True, False])
def test_deterministic_kernels_are_required_in_the_block_and_only_there(determinism_is_a_wish, is_required):
    with pytest.raises(ZeroDivisionError), deterministic_kernels(is_required):
        assert torch.is_deterministic_algorithms_warn_only_enabled() != is_required
        raise ZeroDivisionError
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.is_deterministic_algorithms_warn_only_enabled()


@pytest.mark.parametrize("is_required", [True, False])
@pytest.mark.parametrize("name", ["grpo", "ppo"])
def test_backward_pass_requires_deterministic_kernels_where_a_gpu_only_wishes_for_them(
    determinism_is_a_wish, name, is_required
):
    cfg = config(name=name)
    trainer = make_trainer(replace(cfg, optim=replace(cfg.optim, deterministic=is_required)))
    models = [trainer.model, *([] if trainer.critic is None else [trainer.critic.base_model])]
    seen = []
    for model in models:
        weight = next(parameter for own, parameter in model.named_parameters() if own.endswith("q_proj.weight"))
        weight.register_hook(lambda _: seen.append(torch.is_deterministic_algorithms_warn_only_enabled()))
    train_step(trainer, trainer.compute_advantages(trainer.prepare_batch(random_groups())))
    assert len(seen) >= len(models) and set(seen) == {not is_required}
    assert torch.is_deterministic_algorithms_warn_only_enabled()


def test_products_are_computed_in_float32_and_attention_never_by_cudnn_whatever_was_set_before():
    """cuDNN is left out where kernels must be deterministic."""
    torch.backends.cuda.enable_cudnn_sdp(True)
    torch.set_float32_matmul_precision("high")
    setup_torch(threads=0, seed=0)
    assert torch.get_float32_matmul_precision() == "highest"
    assert not torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    assert not torch.backends.cuda.cudnn_sdp_enabled()


def test_another_thread_gets_the_gpu_and_the_stream_of_the_one_that_asks(monkeypatch):
    second = torch.device("cuda", 1)
    stream, calls = SimpleNamespace(device=second), []
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream if device == second else None)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: calls.append(device))
    monkeypatch.setattr(torch.cuda, "set_stream", lambda stream: calls.append(stream))
    enter = cuda_context(second)
    assert enter is not None and not calls
    enter()
    assert calls == [second, stream]
    assert cuda_context(torch.device("cpu")) is None


@pytest.mark.parametrize(
    ("devices", "script", "expected"),
    [
        ("1", "echo 23028", 23028 * 2**20), ("0,1", 'test "$3" = --id=0 && echo 81559', 81559 * 2**20),
        ("GPU-5", 'test "$3" = --id=GPU-5 && echo 81559', 81559 * 2**20), ("MIG-5", "exit 6", None),
        ("0", "echo '[N/A]'", None), ("0", "true", None), ("", "echo 23028", 0),
    ],
)  # fmt: skip
def test_gpu_memory_is_what_the_driver_says_of_the_first_device(tmp_path, monkeypatch, devices, script, expected):
    (tmp_path / "nvidia0").touch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", devices)
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    assert gpu_memory(str(program), tmp_path) == expected
    assert gpu_memory(str(tmp_path / "missing"), tmp_path) == (0 if expected == 0 else None)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's malloc alone can return what is between blocks")
def test_freed_memory_between_blocks_in_use_is_released():
    code = """
from pathlib import Path
from reasoner.runtime import release_free_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

blocks = [bytearray(b"x" * 100_000) for _ in range(640)]  # below the size that malloc maps alone
last = bytearray(b"x" * 100_000)  # in use, above them all
del blocks
before = resident()
release_free_memory()
print(before - resident())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 32 * 2**20
