"""Step-by-step drivers of our own code.

They take the steps of a model's behaviour on the real implementation.
"""
