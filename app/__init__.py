"""The dashboard: a run's rollouts, curves and second thoughts in a browser. `reasoner app`."""
