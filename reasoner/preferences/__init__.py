"""Preferences between completions, and reward models trained on them (Bradley-Terry)."""
