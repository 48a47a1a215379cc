"""Drivers of our own code: random runs of a pair, a group or name servers, and cells of the matrix.

`stepped/` takes the steps of a model's behaviour.
"""
