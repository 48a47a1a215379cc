"""The suites that `mqproof conform` runs, one folder each, all of one shape.

Each folder has `target` (what an implementation must offer), `steps` (what happened in a run), `session` (one
run), `oracle` (which states of the reference explain it), `checkers` (the named invariants), `machine` (how
runs are drawn) and `suite`. Start with `flush`. `conformance/registry/suite_registry.py` lists all suites.
"""
