"""Damaged disks: named damages of the files of a stopped or running broker, and what its clients then see.

Start with `cases.py`, which lists the damages. `store_files.py` finds the bytes in a store of RocketMQ's
format, `damage_run.py` does the damage and observes, and `checkers.py` judges what was observed.
"""
