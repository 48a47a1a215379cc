"""What clients saw of a cluster, and which promises that breaks.

`lines.py` is the history file (docs/histories.md), `record.py` its operations sorted for the rules, `rules/`
one file for each kind of anomaly. `workload.py` writes such histories. `steps.py` is the history of the one
client that drives a target step by step, of which the oracle knows more than any rule could.
"""
