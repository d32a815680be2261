"""Reinforcement-learning algorithms: batches, advantages, losses, KL estimators, the critic and trust regions."""
