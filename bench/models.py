"""What families of models can do, the table of docs/MODELS.md: `python bench/models.py [FAMILY ...] [--write]`.

Tiny random models of transformers in float32 on a CPU; a process for each family, minutes on idle cores for all. A
cell is the largest difference of log-probabilities in nats, or `refused: REASON`; any other error is printed as FAILED
and ends in exit status 1. With --write the rows replace those of the document, unless one has FAILED.
bench/model_columns.py has the columns.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "MODELS.md"
BEGIN, END = "<!-- python bench/models.py --write -->\n", "<!-- end -->\n"
FAMILIES = {  # model_type -> name
    "llama": "Llama", "qwen2": "Qwen 2", "qwen3": "Qwen 3", "mistral": "Mistral", "smollm3": "SmolLM 3",
    "olmo2": "OLMo 2", "olmo3": "OLMo 3", "phi3": "Phi-3, LongRoPE", "granite": "Granite", "gemma2": "Gemma 2",
    "gemma3_text": "Gemma 3", "cohere": "Cohere", "cohere2": "Cohere 2", "gpt2": "GPT-2", "gpt_neox": "GPT-NeoX",
    "qwen3_moe": "Qwen 3 MoE", "mixtral": "Mixtral", "gpt_oss": "GPT-OSS", "deepseek_v3": "DeepSeek-V3",
    "lfm2": "LFM 2, a hybrid",
}  # fmt: skip
COLUMNS = (
    "trainer", "transformers", "vLLM", "LoRA in transformers", "LoRA in vLLM", "recomputation", "shards", "no mask",
    "export", "export of LoRA",
)  # fmt: skip
ROUNDING = 1e-7  # nats; what is written as less may be as much on another machine


def measure(family: str) -> list[str]:
    """The cells of a family; those that its process does not come to are FAILED."""
    command = [sys.executable, "-c", f"from bench.model_columns import main; main({family!r})"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    cells: dict[str, str] = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            cells |= json.loads(line)
    return shortened([cells.get(column, f"FAILED: exit status {done.returncode}") for column in COLUMNS])


def shortened(cells: list[str]) -> list[str]:
    """A reason that is in the row already is named by its column."""
    first = dict(zip(reversed(cells), reversed(COLUMNS), strict=True))
    return [
        f"refused, as {first[cell]}" if cell.startswith("refused") and first[cell] != column else cell
        for cell, column in zip(cells, COLUMNS, strict=True)
    ]


def documented() -> dict[str, list[str]]:
    """The cells of the families in the document."""
    table = DOCUMENT.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    by_name = {name: cells for name, *cells in rows}
    return {family: by_name[name] for family, name in FAMILIES.items() if name in by_name}


def agrees(cell: str, written: str) -> bool:
    """Whether a cell is what is written: the same text, or a gap of less than ten times as much."""
    if not (is_gap(cell) and is_gap(written)):
        return cell == written
    return float(cell) < 10 * max(float(written), ROUNDING)


def is_gap(cell: str) -> bool:
    return bool(re.fullmatch(r"0|\de-\d+", cell))


def write(rows: dict[str, list[str]]) -> None:
    """Put the table in its place in the document."""
    text = DOCUMENT.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    DOCUMENT.write_text(before + BEGIN + markdown(rows) + END + rest.partition(END)[2], "utf-8")


def markdown(rows: dict[str, list[str]]) -> str:
    from tables import table  # beside this script

    return table(["family", *COLUMNS], ([FAMILIES[family], *cells] for family, cells in rows.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--write", action="store_true", help="replace these rows in docs/MODELS.md")
    arguments = parser.parse_args()
    rows = {}
    for family in arguments.families or FAMILIES:
        rows[family] = measure(family)
        print(markdown({family: rows[family]}).splitlines()[-1], flush=True)
    if any("FAILED" in cell for cells in rows.values() for cell in cells):
        sys.exit(1)
    if arguments.write:
        known = documented() | rows
        write({family: known[family] for family in FAMILIES if family in known})


if __name__ == "__main__":
    main()
