"""The suites that `mqproof conform` runs, one folder each, all of one shape.

Each folder has `steps` (what happened in a run), `target` (what an implementation must offer), `session`
(one run), `oracle` (which states of the reference explain it), `checkers` (the named invariants),
`machine` (how runs are drawn) and `suite`. Start with `registry.py`, the list of all suites.
"""
