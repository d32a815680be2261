"""The embedded base: a small language model that this project pretrains from random weights, and its corpus."""
