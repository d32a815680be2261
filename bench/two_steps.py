"""Problems of two calculations for a small model: `python bench/two_steps.py FOLDER` writes FOLDER/SPLIT.jsonl.

A sum, difference or product, then a sum or difference, in plain words. Both calculations are of the problem's split by
the rule of the problem set one-step, so that no calculation of the held-out problems occurs in training.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from data.arithmetic import Operator, equation
from data.one_step import SPLITS, split_of

PROBLEMS = {"train": 3000, "validation": 60, "heldout": 300}
SEED = 0
_TEXTS: dict[tuple[Operator, Operator], tuple[str, str]] = {
    ("+", "+"): (
        "What is {a} + {b} + {c}?",
        "Tom has {a} apples, gets {b} from Anna and {c} from Ben. How many apples does he have now?",
    ),
    ("+", "-"): (
        "What is {a} + {b} - {c}?",
        "There are {a} boys and {b} girls in a club, and {c} of them go home. How many children are left?",
    ),
    ("-", "+"): (
        "What is {a} - {b} + {c}?",
        "A bus carries {a} people. Then {b} get off and {c} get on. How many people are on the bus?",
    ),
    ("-", "-"): (
        "What is {a} - {b} - {c}?",
        "Anna has {a} stickers, gives {b} to Tom and {c} to Ben. How many stickers are left?",
    ),
    ("*", "+"): (
        "What is {a} * {b} + {c}?",
        "A box holds {a} pens. How many pens are {b} boxes and {c} more pens?",
    ),
    ("*", "-"): (
        "What is {a} * {b} - {c}?",
        "Each of {b} friends has {a} dollars. They pay {c} dollars together. How many dollars are left?",
    ),
}
_RANGES = {"+": ((2, 30), (2, 9)), "-": ((5, 30), (2, 9)), "*": ((2, 9), (2, 9))}
_LAST = 2, 9


def problem(draw: random.Random, split: str) -> dict[str, str]:
    """A problem of the split: its question, its answer and its kind."""
    while True:
        (first, second), texts = draw.choice(list(_TEXTS.items()))
        a, b = (draw.randint(*ends) for ends in _RANGES[first])
        between, c = equation(a, first, b).value, draw.randint(*_LAST)
        if between > c and {split_of(first, a, b), split_of(second, between, c)} == {split}:
            question = draw.choice(texts).format(a=a, b=b, c=c)
            return {"question": question, "answer": str(equation(between, second, c).value), "subject": first + second}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the files go")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(SEED)
    for split in SPLITS:
        rows: dict[str, dict[str, str]] = {}
        while len(rows) < PROBLEMS[split]:
            row = problem(draw, split)
            rows[row["question"]] = row
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows.values()))


if __name__ == "__main__":
    main()
