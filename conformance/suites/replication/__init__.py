"""The named invariants of a master and its slave over one observed run (spec/tla/Replication.tla).

It has `checkers` alone: no target of its own can be asked for these observations from outside. The steps of a
pair are drawn and played by `conformance/subjects/pair_run.py`, and replayed from the model by `behaviours`.
"""
