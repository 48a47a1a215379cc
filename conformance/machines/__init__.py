"""Hypothesis state machines, one for each module of spec/tla, thin: a rule is one line of a session.

Begin at `flush.py`.
"""
