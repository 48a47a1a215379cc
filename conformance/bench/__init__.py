"""Benchmarks: brokers, replicas and history checks, compared in one run.

Start with `broker.py`. The command is `conformance/commands/benchmarks.py`.
"""
