"""The audit: finds lost, duplicated, phantom, reordered and not durable messages in event logs with Spark.

Begin at `audit.py`, which gathers (`evidence.py`), checks (`checks/`) and judges what `inputs.py`, `read.py`
and `store.py` read: event logs, and brokers' store directories through the data sources of `sources/`.
`share.py` and `partition.py` are what a task does with its share of a log; `profile.py`, `fingerprint.py` and
`order.py` say what it is asked, and where a closer look is due; `extraction.py` takes out what is looked at.
`generate.py` makes logs with planted anomalies and their ground truth, against which the checks themselves
are tested.
"""
