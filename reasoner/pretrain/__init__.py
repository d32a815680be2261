"""The embedded base: a small language model trained from nothing by this project, and the text it was trained on."""
