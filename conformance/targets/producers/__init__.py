"""Producers as targets of the suite producers (conformance/producers). Begin at `targets.py`."""
