"""Recipes of several stages over the Python API, and the pipeline that runs their stages."""
