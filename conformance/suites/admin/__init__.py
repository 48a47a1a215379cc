"""The administration suite: topics, groups, offsets and message queries of one broker.

Start with `session.py`, which has the steps of a run. `target.py` lists the operations that a broker must
offer, `checkers.py` has the named invariants, and `oracle.py` has the states that the model
(reference/rules/administration.py) allows.
"""
