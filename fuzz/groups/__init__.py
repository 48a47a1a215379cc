"""Simulation of consumer groups of all kinds, judged by the rules of histories.

`program.py` runs a program: the clients are those of conformance's workloads, the cluster and its faults are
those of `fuzz/cluster`. `judge.py` applies the rules.
"""
