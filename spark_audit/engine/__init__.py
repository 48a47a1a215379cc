"""One DataFrame API for both engines: PySpark's own on Spark, and a translation of it to DuckDB's SQL.

Checks, evidence and tallies import `functions`, `Window` and the types from here, and are written as for
PySpark. `active.py` says which engine runs. The embedded engine (`embedded/`) needs no Spark and no Java.
"""
