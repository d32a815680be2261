"""A small student learns from rewards, from a teacher on its own samples, or from both:
`python bench/distillation.py --student runs/small --teacher RUN --out DIR`.

The student is made by `reasoner base build --out runs/small --width 80 --layers 3 --feed-forward 240 --steps 2400`, the
teacher is a run of `reasoner train --model base`. `teacher` estimates the KL at the sampled tokens, `full` has it over
the vocabulary. `untrained` has the base itself as a teacher, the control; `opsd` the student, which reads the answer.
All with the same budget of sampled tokens. Writes distillation.md and distillation.png. Stop it and call it again:
finished runs are kept, others go on.
"""

from __future__ import annotations

from entries import arguments, compare
from runs import ONE_UPDATE

HINT = "{question} The answer is {answer}."

if __name__ == "__main__":
    parser = arguments(__doc__, tokens=400_000)
    parser.add_argument("--student", required=True, help="the model that learns")
    parser.add_argument("--teacher", required=True, help="the model that it learns from")
    args = parser.parse_args()
    student = ONE_UPDATE | {"model": args.student, "preset": "base"}
    taught = student | {"algo.filter_zero_advantages": False}  # groups with equal rewards have a gradient
    full = taught | {"teacher.alone": True, "teacher.kl": "full"}
    compare(
        args,
        "distillation",
        {
            "rewards": student,
            "teacher": taught | {"teacher.model": args.teacher, "teacher.alone": True},
            "full": full | {"teacher.model": args.teacher},
            "both": taught | {"teacher.model": args.teacher},
            "untrained": taught | {"teacher.model": "base", "teacher.alone": True},
            "opsd": full | {"teacher.model": args.student, "teacher.prompt": HINT},
        },
    )
