"""The suites that `mqproof conform` runs, one folder each, all with the same structure.

Each folder has these modules:

- `target`: the operations that an implementation must offer
- `steps`: the operations of a run
- `session`: one run
- `oracle`: the states of the reference that explain a run
- `checkers`: the named invariants
- `machine`: how runs are drawn
- `suite`: the definition of the suite

Start with `flush`. `conformance/registry/suite_registry.py` lists all suites.
"""
