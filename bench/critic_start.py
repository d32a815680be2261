"""How much of the returns a reward model's values explain: `python bench/critic_start.py --reward-model RM RUN ...`.

For the first step of each run the reward model's score of the state before each completion token, which is what a
critic that starts from it says, beside the response's reward. Prints the share of the variance that the scores explain
as they are, and that the best straight line from scores to rewards explains, fitted on the same tokens: no other scale
or offset of the scores explains more. And the correlation of score and reward by the place in the response.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel

from reasoner.models.resolve import resolve_model
from reasoner.models.reward_model import load_reward_model
from reasoner.runs.rollouts import read

PARTS = 5  # of a response


@torch.no_grad()
def first_step(run: Path, model: PreTrainedModel) -> Iterator[tuple[np.ndarray, float]]:
    """For each completion of the run's first step: the score before each of its tokens, and its reward."""
    for row in read(run, 0):
        ids = torch.tensor([[*row["prompt_token_ids"], *row["token_ids"]]])
        scores = model.score(model.base_model(input_ids=ids).last_hidden_state)[0, :, 0]
        yield scores[len(row["prompt_token_ids"]) - 1 : -1].numpy(), row["reward"]


def explained(values: np.ndarray, returns: np.ndarray) -> float:
    return float(1 - np.var(returns - values) / np.var(returns))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="a run folder with rollouts")
    parser.add_argument("--reward-model", required=True, help="a run of reasoner reward-model train, or a folder")
    args = parser.parse_args()
    folder = resolve_model(args.reward_model, runs=Path("runs"))
    model = load_reward_model(folder, device=torch.device("cpu"))
    parts = " | ".join(f"{100 * part // PARTS} to {100 * (part + 1) // PARTS} %" for part in range(PARTS))
    print(f"| run | explained | by the best line | correlation at {parts} |\n|---|---:|---:|{'---:|' * PARTS}")
    for run in args.runs:
        values, returns, places = [], [], []
        for scores, reward in first_step(run, model):
            values.append(scores)
            returns.append(np.full(len(scores), reward))
            places.append(np.arange(len(scores)) * PARTS // len(scores))
        value, target, place = (np.concatenate(own) for own in (values, returns, places))
        slope, offset = np.polyfit(value, target, 1)
        cells = [explained(value, target), explained(slope * value + offset, target)]
        cells += [np.corrcoef(value[place == part], target[place == part])[0, 1] for part in range(PARTS)]
        print(f"| {run.name} | {' | '.join(f'{cell:.3f}' for cell in cells)} |")


if __name__ == "__main__":
    main()
