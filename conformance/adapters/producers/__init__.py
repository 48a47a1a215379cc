"""Producers as targets of the producer suite (conformance/suites/producers). Start with `factories.py`."""
