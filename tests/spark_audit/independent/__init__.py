"""A second writer of event logs, made from docs/reference/event-log.md alone.

It shares no code with spark_audit/generator. `simulation.py` has the nodes, `clean_cluster.py` a cluster at
work, `anomalies.py` and `ledger_anomalies.py` what goes wrong, and `collection.py` what happens to the files
before the audit reads them.
"""
