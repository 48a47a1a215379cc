"""The audit: finds lost, duplicated, phantom, reordered and not durable messages in event logs with Spark.

Begin at `audit.py`. Data flows one way: `sources/` reads events and stores, `passes/` aggregates them,
`evidence/` collects what the checks read, `checks/` finds violations, `judging/` turns these into verdicts,
and `reporting/` shows them. On top of the audit are `incremental/` (runs that follow one another, streaming),
`generator/` (logs with injected anomalies and their ground truth), `quality/` (mutants and benchmarks of the
audit itself) and `command/` (the command line). import-linter holds these layers.
"""
