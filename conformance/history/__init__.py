"""Histories of what clients saw of a cluster, and the anomalies in them. For users: docs/histories.md.

`lines.py` is the history file, `record.py` its operations sorted for the rules, `rules/` the anomalies, one
module for each kind, `judge.py` all rules on one history. `exact_delivery.py` makes histories without
anomalies, and `injected/` puts one into them.
"""
