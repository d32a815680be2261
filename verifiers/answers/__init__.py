"""A parser of final answers: tokens, a grammar that yields typed values, and equivalence for each type."""
