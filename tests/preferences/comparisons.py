"""Small comparisons for the tests of this folder."""

import torch

from reasoner.preferences.dataset import Comparison, Pair, ScoredText


def comparison(name: str, prompt: tuple[int, ...], *completions: tuple[int, ...]) -> Comparison:
    """Completions of a prompt in the order of preference, with all pairs."""
    pairs = tuple(Pair(i, j) for i in range(len(completions)) for j in range(i + 1, len(completions)))
    return Comparison(name, prompt, tuple(ScoredText(ids) for ids in completions), pairs)


# Prompts and completions of several lengths; one ends in the end token (0), one holds the pad token (1) at its end.
COMPARISONS = [
    comparison("a", (5, 6, 7), (8, 9, 10, 11), (12, 0), (13, 14, 15), (16, 17, 18, 19, 20, 21)),
    comparison("b", (20,), (21, 22), (23, 1)),
    comparison("c", (30, 31, 32, 33, 34), (35, 36, 37), (38,), (39, 40, 41, 42, 43)),
]


def spread_head(model: torch.nn.Module, seed: int = 3) -> None:
    """Give the head random weights, so that scores differ."""
    generator = torch.Generator().manual_seed(seed)
    weight = model.score.weight
    with torch.no_grad():
        weight.copy_(torch.randn(weight.shape, generator=generator, dtype=weight.dtype) * 0.3)
