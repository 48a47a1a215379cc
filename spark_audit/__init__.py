"""The audit: finds lost, duplicated, phantom, reordered and not durable messages in event logs.

It runs on Spark, or inside the process on DuckDB. Begin at `audit.py`.

The modules and folders, from the bottom to the top; each imports only from those before it. Data flows one
way, from `sources` to `reporting`:

- `engine`: PySpark's DataFrame API, on Spark or translated to DuckDB's SQL
- `runtime`, `schema`: the Spark session and the folders of a run; the columns of findings
- `spark_schema`: the schemas of events and findings on Spark
- `sources`: reads event logs, stores, topics, traces and spans
- `scan`: reads the splits of an event log in tasks
- `passes`: aggregates the events
- `evidence`: collects what the checks read
- `checks`: finds violations; one module for each invariant
- `judging`: turns violations into verdicts
- `reporting`: shows the verdicts
- `audit`: runs all of these
- `incremental`: runs that follow one another, and the watch of growing logs
- `generator`: logs with injected anomalies and their ground truth
- `quality`: mutants and benchmarks of the audit itself
- `command`, `cli`: the commands of `mqproof audit`
"""
