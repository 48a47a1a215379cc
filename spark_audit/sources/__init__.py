"""A broker's store directory as PySpark data sources: commit log, consume queues, key index.

Begin at `stores.py`, which registers them; `commit_log.py` finds and decodes records, `ranges.py` cuts files
into what workers read side by side. Only this folder of the audit imports `impl`, for the record codec.
"""
