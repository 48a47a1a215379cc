"""What clients saw of a cluster, and which promises that breaks. For people: docs/histories.md.

`lines.py` is the history file, `record.py` its operations sorted for the rules, `rules/` the anomalies, one
file for each kind, `judge.py` all of them at once. `perfect.py` makes histories without anomalies,
`planted.py` puts one in. `steps.py` is the history of the one client that drives a target step by step, of
which the oracle knows more than any rule could; `of_steps.py` gives it to the rules.
"""
