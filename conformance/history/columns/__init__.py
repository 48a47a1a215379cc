"""Histories as columns of numbers: a folder with arrays for the ordinary operations of each queue.

`tables.py` is the format, where to start reading. `conversion.py` writes it from lines and reads it back.
`sieve.py` finds the queues in which no rule can be violated, by numpy. `judged_columns.py` judges all other
operations by the ordinary rules, and merges the findings.
"""
