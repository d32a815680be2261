"""GRPO's settings on the embedded base, one at a time: `python bench/settings.py --out DIR`.

The size of the group at equal completions per step, the KL coefficient, steps off the policy and an engine in bfloat16
with and without the importance correction, and a share of wrong gold answers (what a wrong grader costs). All with the
same budget of sampled tokens, one update a step, a constant learning rate and the base's preset otherwise; 400,000
tokens are about 20 steps, a third of the preset's. Writes settings.md (a table over the seeds; the interval
beside a difference from `default` is over seeds) and settings.png (small multiples). Stop it and call it again:
finished runs are kept, others go on.
"""

from __future__ import annotations

import sys
from pathlib import Path

from entries import arguments, compare
from runs import ONE_UPDATE, Settings

COMPLETIONS = 256  # per step

UNCORRECTED = {"program": f"{sys.executable} {Path(__file__).with_name('uncorrected.py')}"}

CHANGES: dict[str, Settings] = {  # one at a time, from groups of 8, beta 0.001, on-policy
    "default": {"run.save_interval": 50},
    **{f"group-{size}": {"algo.group_size": size, "data.prompts_per_step": COMPLETIONS // size} for size in (2, 4, 16)},
    **{f"beta-{beta}": {"algo.beta": beta} for beta in (0, 0.04)},
    **{
        f"off-policy-{steps}{'-corrected' if correction == 'token' else ''}": {
            "max_off_policy_steps": steps,
            "algo.importance_sampling": correction,
            "run.save_interval": 50,
            **(UNCORRECTED if correction == "none" else {}),
        }
        for steps, correction in ((1, "none"), (1, "token"), (4, "none"), (4, "token"))
    },
    **{
        f"bfloat16-sampler-{correction}": {"engine.dtype": "bfloat16", "algo.importance_sampling": correction}
        for correction in ("none", "token", "token_mask")
    },
    **{f"wrong-golds-{share}": {"data.wrong_golds": share} for share in (0.1, 0.3)},
}
ENTRIES = {name: ONE_UPDATE | change for name, change in CHANGES.items()}


if __name__ == "__main__":
    compare(arguments(__doc__, tokens=400_000).parse_args(), "settings", ENTRIES)
