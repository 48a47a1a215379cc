"""Collects the evidence that the checks read from the results of the passes.

Start with collect.py, then gather.py.
"""
