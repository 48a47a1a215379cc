"""Judges the audit itself: mutants of its checks, benchmarks, sizing."""
