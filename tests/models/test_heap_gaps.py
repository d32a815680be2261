"""Gaps between stored activations: which are returned, and that the gradient is the same to the bit."""

import platform
import subprocess
import sys

import pytest
import torch

from reasoner.models.heap_gaps import bound_gaps
from tests.fixtures.tiny import tiny_model

IDS = torch.arange(48).reshape(2, 24)


def gradients(model):
    model(input_ids=IDS).logits.square().mean().backward()
    return [parameter.grad for parameter in model.parameters()]


def test_gradient_with_bounded_gaps_is_the_same_to_the_bit():
    plain, model = (tiny_model(vocabulary=60, width=32, layers=2) for _ in range(2))
    bound_gaps(model.base_model)
    assert all(torch.equal(own, other) for own, other in zip(gradients(model), gradients(plain), strict=True))


GAPS = """
import sys
from pathlib import Path

import torch

from reasoner.models.heap_gaps import _Gaps, _anonymous_bytes

torch.set_num_threads(1)
large = torch.ones(2**22)
del large  # malloc maps what is larger than any block freed so far; from now on it does not
gaps = _Gaps()
gaps.look()
tensors = [torch.ones(100_000) for _ in range(640)]  # 244 MiB
share, is_seen = int(sys.argv[1]), sys.argv[2] == "seen"
del tensors[::share]
if is_seen:
    gaps.before_pass(torch.nn.Identity(), ())
before = _anonymous_bytes()
gaps.look()
print((before - _anonymous_bytes()) // 2**20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other malloc libraries have other gaps")
@pytest.mark.parametrize(
    ("share", "seen", "least", "most"),
    [
        (2, "new", 100, 130),  # every second tensor was freed: half of 244 MiB are gaps
        (40, "new", 0, 0),  # 6 MiB of gaps are allowed beside 238
        (2, "seen", 0, 0),  # the pass begins with them, and can use them
    ],
)
def test_gaps_are_returned_where_they_are_new_and_more_than_an_eighth_of_what_is_in_use(share, seen, least, most):
    command = [sys.executable, "-c", GAPS, str(share), seen]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert least <= int(done.stdout) <= most
