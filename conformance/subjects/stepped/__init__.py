"""Targets of behaviours: our code, which takes the steps of a model one by one.

Start with `model_targets.py`, which finds the target of a model. A module is named after what it drives.
"""
