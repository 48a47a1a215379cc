"""The audit: finds lost, duplicated, phantom, reordered and not durable messages in event logs with Spark.

Begin at `audit.py`, which reads (`read.py`), gathers (`evidence.py`), checks (`checks/`) and judges.
`generate.py` makes logs with planted anomalies and their ground truth, against which the checks themselves
are tested.
"""
