"""The audit: finds lost, duplicated, phantom, reordered and not durable messages in event logs with Spark.

Begin at `audit.py`, which gathers (`evidence.py`), checks (`checks/`) and judges what `inputs.py`, `read.py`
and `store.py` read: event logs, and brokers' store directories through the data sources of `sources/`.
What the first pass tells is in `profile.py`; `fingerprint.py` and `order.py` find where a closer look is due.
`generate.py` makes logs with planted anomalies and their ground truth, against which the checks themselves
are tested.
"""
