"""Generates logs, stores and traces with injected anomalies and their ground truth.

Start with `scenario.py`.
"""
