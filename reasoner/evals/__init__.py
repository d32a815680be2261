"""Evaluation: from responses, sampled here or elsewhere, to metrics with their uncertainty. Does not import torch."""

PROBLEMS = 150  # default number of problems of a generated set, which has no natural end
