"""Explores the states of reference models: in one process, in several, on Spark, or on the disk.

Start with `search.py`; `spilling/` explores more states than fit in memory.
"""
