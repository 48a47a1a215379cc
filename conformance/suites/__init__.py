"""The suites that `mqproof conform` runs, one folder each, all with the same structure.

Each folder has these modules:

- `target`: what an implementation must offer
- `dimensions`: sizes and situations, of which the examples meet every pair of values
- `steps`: the operations of a run
- `session`: one run
- `oracle`: the states of the reference that explain a run
- `checkers`: the named invariants
- `machine`: how runs are drawn
- `suite`: the definition of the suite

Some suites lack some of them; `ABSENT` in tests/test_layout.py says why. Start with `flush`.
`conformance/registry/suite_registry.py` lists all suites.
"""
