"""An engine that writes what a script says, for tests of everything around it."""

from __future__ import annotations

from data import Problem
from reasoner.engines import unheard
from reasoner.progress import uncounted
from reasoner.seeds import sample_seed
from reasoner.types import Completion, Prompt


class Scripted:
    """Writes script[problem id][sample] (from the start again where the script is short), and remembers the seeds.

    Which sample a seed is for is looked up among those that `reasoner eval` gives.
    """

    name = "scripted"

    def __init__(self, script):
        self.script = script
        self.seeds = []
        self.calls = 0

    def sample(self, prompts, sampling, seeds, done=unheard, tick=uncounted):
        self.seeds = [list(row) for row in seeds]
        self.calls += 1
        drawn = [
            tuple(self._completion(prompt, j) for j in self._samples(prompt, row))
            for prompt, row in zip(prompts, seeds, strict=True)
        ]
        for place, completions in enumerate(drawn):
            done(place, completions)
            so_far = [len(completion.token_ids) for own in drawn[: place + 1] for completion in own]
            tick(lambda so_far=so_far: (len(so_far), sum(so_far)))
        return drawn

    def _samples(self, prompt, row):
        known = {sample_seed(0, "eval", prompt.problem.id, j): j for j in range(64)}
        return [known.get(seed, place) for place, seed in enumerate(row)]

    def _completion(self, prompt, sample):
        texts = self.script[prompt.problem.id]
        text = texts[sample % len(texts)]
        size = max(1, len(text.split()))
        return Completion(text, tuple(range(size)), (-0.5,) * size, "stop", 3)


def prompt(name, answer, prefill="", subject=None, level=None):
    problem = Problem(name, "?", answer, "sums", "train", level, subject)
    return Prompt(problem, f"?{prefill}", prefill, (1,))


def answering(value, thought="so"):
    return f"<think> {thought} </think> <answer> {value} </answer>"
