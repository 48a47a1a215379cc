"""The inputs of the audit: event logs, store directories, topics, traces, spans, and mapped tables.

Start with `inputs.py`, which finds the files, and `read.py`, which reads event logs into one table on Spark.
`embedded_read.py` reads the same rows into DuckDB. The other inputs:

- `stores.py`: store directories, as data sources of PySpark. `store/commit_log.py` finds and decodes records.
- `topics.py`, `topic_writer.py`: the topics of a running cluster as a data source of PySpark, by our client.
  `topic_positions.py` and `topic_batches.py` read them without Spark.
- `trace/`: RocketMQ's message traces
- `otel/`: OpenTelemetry spans
- `mapping/`: tables and logs of another form, mapped by a file of the user
"""
