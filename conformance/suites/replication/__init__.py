"""The named invariants of a master and its slave in one observed run (spec/tla/Replication.tla).

It has only `checkers`: these observations cannot be made on a target from outside.
`conformance/subjects/pair_run.py` draws and runs the steps of a pair, and `behaviours` replays them from the
model.
"""
