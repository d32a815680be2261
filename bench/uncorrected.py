"""`reasoner train` with rollouts of older weights that nothing corrects, which the command refuses: what does it cost?

python bench/uncorrected.py train --model base --max_off_policy_steps 4 --algo.importance_sampling none
"""

from __future__ import annotations

import sys

from reasoner.cli.main import main
from reasoner.config import check

if __name__ == "__main__":
    check.RULES = tuple(rule for rule in check.RULES if rule.when != "max_off_policy_steps > 0")
    sys.exit(main(sys.argv[1:]))
