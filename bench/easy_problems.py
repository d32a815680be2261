"""Write problems that a small instruction model sometimes solves: `python bench/easy_problems.py FOLDER`.

Three disjoint files, train.jsonl, validation.jsonl and heldout.jsonl: sums, differences and products of small numbers,
and word problems of one step, in plain words. The split of a problem is a function of its two numbers, so no file holds
a calculation of another one, in whatever words. And few-shot.toml, a prompt style with three worked examples, whose
calculations belong to the training problems.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from itertools import product
from pathlib import Path

SPLITS = (("train", 70), ("validation", 80), ("heldout", 100))  # upper ends of the hash's range, per cent
TEXTS = {
    "+": (
        "What is {a} + {b}?",
        "Tom has {a} apples and gets {b} more. How many apples does he have now?",
        "There are {a} boys and {b} girls in a club. How many children are there?",
    ),
    "-": (
        "What is {a} - {b}?",
        "Anna has {a} stickers and gives away {b}. How many stickers are left?",
        "A bus carries {a} people and {b} get off. How many people stay on the bus?",
    ),
    "*": (
        "What is {a} * {b}?",
        "A box holds {a} pens. How many pens are in {b} boxes?",
        "Each of {b} friends pays {a} dollars. How many dollars do they pay together?",
    ),
}
RANGES = {
    "+": (range(11, 100), range(11, 100)),
    "-": (range(20, 100), range(2, 100)),
    "*": (range(3, 30), range(3, 10)),
}
VALUES = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}

FEW_SHOT = r'''text = """Question: What is 25 + 14?
Answer: 25 + 14 = 39. \\boxed{39}

Question: Sam has 30 marbles and loses 12. How many marbles are left?
Answer: 30 - 12 = 18. \\boxed{18}

Question: Each of 4 children eats 12 nuts. How many nuts do they eat together?
Answer: 12 * 4 = 48. \\boxed{48}

Question: {question}
Answer:"""
extract = "boxed"
stop = ["\n\n"]
'''


def split_of(operator: str, a: int, b: int) -> str:
    """The split of a calculation; the order of the operands of a sum or a product does not matter."""
    low, high = sorted((a, b)) if operator != "-" else (a - b, b)  # a - b undoes the sum of a - b and b
    name = "*" if operator == "*" else "+"
    share = int.from_bytes(hashlib.sha256(f"{name} {low} {high}".encode()).digest()[:4]) % 100
    return next(split for split, end in SPLITS if share < end)


def problems(split: str, limit: int) -> list[dict[str, object]]:
    """The first problems of a split in an order fixed by a hash, a third of each operator."""
    rows = []
    for operator, (left, right) in RANGES.items():
        pairs = [(a, b) for a, b in product(left, right) if operator != "-" or b < a]
        pairs = sorted(pairs, key=lambda pair: hashlib.sha256(f"{operator}{pair}".encode()).digest())
        pairs = [pair for pair in pairs if split_of(operator, *pair) == split][: limit // 3]
        for number, (a, b) in enumerate(pairs):
            text = TEXTS[operator][number % len(TEXTS[operator])]
            kind = "calculation" if number % len(TEXTS[operator]) == 0 else "word problem"
            answer = VALUES[operator](a, b)
            row = {"id": f"{split}/{a}{operator}{b}", "question": text.format(a=a, b=b), "answer": str(answer)}
            rows.append(row | {"subject": f"{kind} {operator}"})
    return sorted(rows, key=lambda row: hashlib.sha256(str(row["id"]).encode()).digest())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for split, limit in (("train", 3000), ("validation", 60), ("heldout", 150)):
        rows = problems(split, limit)
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        print(f"{folder / split}.jsonl: {len(rows)} problems")
    (folder / "few-shot.toml").write_text(FEW_SHOT)
    print(folder / "few-shot.toml")


if __name__ == "__main__":
    main()
