"""Pipelines: ordinary commands in order, as stages that a kill does not undo, and the table of their results."""
