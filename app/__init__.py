"""The dashboard, `reasoner app`: a run's curves, rollouts and reflection in a browser."""
