"""Environments of other libraries as problems: reasoning-gym, and Prime Intellect's `verifiers`. See spec.py."""
