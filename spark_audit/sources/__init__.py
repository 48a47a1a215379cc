"""PySpark data sources: a broker's store directory, and the topics of a running cluster.

Start with `stores.py`, which registers the sources for directories. `commit_log.py` finds and decodes
records; `ranges.py` splits files into ranges that workers read in parallel. `topics.py` reads a cluster with
our client. Only this folder of the audit imports `impl`, for the record codec and the client.
"""
