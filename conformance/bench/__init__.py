"""Benchmarks: brokers, replicas and history checks, side by side in one run.

Start with `broker.py`. The command is `conformance/commands/benchmarks.py`.
"""
