"""Evaluation: sampled or foreign responses in, figures with their uncertainty out. No torch here."""

PROBLEMS = 150  # of a generated set, which has no natural end, unless somebody says how many
