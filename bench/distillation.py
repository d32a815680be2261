"""A small student learns from rewards, from a teacher on its own samples, or from both:
`python bench/distillation.py --student runs/small --teacher RUN --out DIR`.

The student is made by `reasoner base build --out runs/small --width 80 --layers 3 --feed-forward 240 --steps 2400`, the
teacher is a run of `reasoner train --model base`; `untrained` has the base itself as a teacher, the control. All with
the same budget of sampled tokens. Writes distillation.md and distillation.png. Stop it and call it again: finished runs
are kept, others go on.
"""

from __future__ import annotations

from entries import arguments, compare
from runs import ONE_UPDATE

if __name__ == "__main__":
    parser = arguments(__doc__, tokens=400_000)
    parser.add_argument("--student", required=True, help="the model that learns")
    parser.add_argument("--teacher", required=True, help="the model that it learns from")
    args = parser.parse_args()
    student = ONE_UPDATE | {"model": args.student, "preset": "base"}
    compare(
        args,
        "distillation",
        {
            "rewards": student,
            "teacher": student | {"teacher.model": args.teacher, "teacher.alone": True},
            "both": student | {"teacher.model": args.teacher},
            "untrained": student | {"teacher.model": "base", "teacher.alone": True},
        },
    )
