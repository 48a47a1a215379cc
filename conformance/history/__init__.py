"""Histories of what clients observed of a cluster, and the anomalies in them.

The user guide is docs/explanation/conformance/histories.md.
`lines.py` defines the history file. `record.py` sorts its operations for the rules. `rules/` has the
anomalies, one module for each kind. `judge.py` applies all rules to one history, and `parallel.py` does so in
several processes. `exact_delivery.py` generates histories without anomalies, and `injected/` injects one
anomaly into such a history.
"""
