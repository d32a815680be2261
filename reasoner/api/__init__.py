"""The Python API behind `from reasoner import train, evaluate, grade, Problem`. Importing it does not import torch."""
