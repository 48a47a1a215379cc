"""Explores the states of reference models: in one process, in several, or on Spark.

Start with `search.py`.
"""
