"""The embedded engine: PySpark's DataFrame API, as far as the audit uses it, as SQL for DuckDB.

A `Query` is a DataFrame, `database.py` has its session, and `column_functions.py` has the functions. What is
not translated does not exist here, so a check that uses it fails by name instead of giving another result.
"""
