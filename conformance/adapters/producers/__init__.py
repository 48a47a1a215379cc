"""Producers as targets of the suite producers (conformance/suites/producers). Begin at `targets.py`."""
