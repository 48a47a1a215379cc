"""Behaviours generated from the models: few paths that take every step of a state graph, run on targets.

Begin with cover.py, which finds the paths; corpus.py writes them down for anybody to replay; replay.py runs
them on a target and tells which states and steps were reached there; drawing.py shows that as a graph.
outcomes.py finds the paths to each outcome of each condition of an action (conditions.py).
"""
