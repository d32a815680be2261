"""Kinds of GPU for predictions: figures of their data sheets, in one direction, without sparsity."""

from __future__ import annotations

from dataclasses import dataclass

from reasoner.config.presets import MACHINES

GPUS_PER_NODE = 8  # joined by `link`; beyond them by `network`


@dataclass(frozen=True, slots=True)
class Gpu:
    """A kind of GPU. Bandwidths in bytes a second."""

    machine: str  # the size of its memory: a name in config.presets.MACHINES
    flops: float  # of bfloat16 matrix products with sums in float32
    memory_bandwidth: float
    link: float  # to the other GPUs of its node
    network: float  # to those of other nodes, each GPU with a network card of the usual speed for its kind

    @property
    def memory(self) -> int:
        """Bytes of its memory."""
        return MACHINES[self.machine]


# NVIDIA's data sheets: RTX 4090 (Ada architecture paper; PCIe 4.0 x16), A100 80GB SXM, H100 SXM, H200 SXM. Networks:
# 100 Gbit/s Ethernet shared by eight cards without NVLink; HDR InfiniBand (200 Gbit/s) and NDR (400 Gbit/s) a GPU.
GPUS = {
    "rtx-4090": Gpu("24gb", 165e12, 1.008e12, 32e9, 12.5e9 / 8),
    "a100": Gpu("80gb", 312e12, 2.039e12, 300e9, 25e9),
    "h100": Gpu("80gb", 989e12, 3.35e12, 450e9, 50e9),
    "h200": Gpu("141gb", 989e12, 4.8e12, 450e9, 50e9),
}


def find_gpu(name: str) -> Gpu:
    """The kind of GPU of that name. ValueError for an unknown one."""
    if name not in GPUS:
        raise ValueError(f"--gpu is {name!r}; known are {', '.join(GPUS)}")
    return GPUS[name]
