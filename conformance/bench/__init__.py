"""Benchmarks: brokers, replicas and history checks, side by side in one run. Start with `cli.py`."""
