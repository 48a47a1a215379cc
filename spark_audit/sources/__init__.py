"""PySpark data sources: a broker's store directory, and the topics of a running cluster.

Begin at `stores.py`, which registers those of directories; `commit_log.py` finds and decodes records,
`ranges.py` cuts files into what workers read side by side. `topics.py` reads a cluster with our client. Only
this folder of the audit imports `impl`, for the record codec and the client.
"""
