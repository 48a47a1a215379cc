"""Step-by-step drivers of our own code: they take the steps of a model's behaviour on the implementation.

Start with `stepped_targets.py`, which finds the driver of a model.
"""
