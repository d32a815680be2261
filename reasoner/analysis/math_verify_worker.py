"""math-verify as a second grader, in a process of its own: `python -m reasoner.analysis.math_verify_worker`.

Input: a JSON list of [answer, gold]. Output: a JSON line for each pair in order, true, false, or null where it cannot
decide. Answers are hostile: the memory is limited, and math-verify's own alarm ends a parse or a comparison after five
seconds.
"""

from __future__ import annotations

import json
import logging
import resource
import subprocess
import sys
from collections.abc import Sequence

from reasoner.console import print_result

_MEMORY_BYTES = 2**31
_SECONDS = 5  # for a parse and for a comparison
_MAX_SECONDS = 60.0  # for all pairs
_MAX_CHARACTERS = 500  # of an answer or a gold answer


def math_verify(pairs: Sequence[tuple[str, str]]) -> list[bool | None]:
    """Judge each (answer, gold); None where math-verify cannot, and for all pairs after the time limit."""
    command = [sys.executable, "-m", "reasoner.analysis.math_verify_worker"]
    try:
        done = subprocess.run(command, input=json.dumps(pairs), capture_output=True, text=True, timeout=_MAX_SECONDS)
        output = done.stdout
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode()
    verdicts = [json.loads(line) for line in output.split("\n")[:-1]]  # the last one is empty or torn
    return verdicts + [None] * (len(pairs) - len(verdicts))


def _serve() -> None:
    pairs = json.loads(sys.stdin.read())
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    logging.disable(logging.CRITICAL)
    for answer, gold in pairs:
        print_result(json.dumps(_judge(answer, gold)))


def _judge(answer: str, gold: str) -> bool | None:
    from math_verify import parse, verify

    if max(len(answer), len(gold)) > _MAX_CHARACTERS:
        return None
    try:
        sides = [parse(rf"\boxed{{{text}}}", parsing_timeout=_SECONDS) for text in (gold, answer)]
        return bool(verify(*sides, timeout_seconds=_SECONDS)) if all(sides) else None
    except Exception:  # foreign code on hostile text: it cannot decide
        return None


if __name__ == "__main__":
    _serve()
