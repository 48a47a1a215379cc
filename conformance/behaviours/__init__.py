"""Behaviours generated from the models: few paths that cover every step of a state graph, run on targets.

Start with `cover.py`, which finds the paths. `corpus.py` writes and reads them; `replay.py` runs them on a
target and counts the states and steps that were reached; `drawing.py` draws these as a graph. `outcomes.py`
finds the paths to each outcome of each condition of an action (`conditions.py`).
"""
