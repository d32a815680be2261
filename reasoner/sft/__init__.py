"""Supervised finetuning: examples from files, conversations and stored rollouts, and training on their completions."""
