"""Tools that a model calls while it answers: the forms of a call, and the processes that run calls."""
