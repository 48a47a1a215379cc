"""The suite of delivery and rebalance: one broker and a consumer group (spec/tla/Group.tla).

The suite simulates the members itself. Start with `session.py`, which has the steps of a run. `target.py`
lists the operations that a broker must offer, `checkers.py` has the named invariants, and `oracle.py` has the
states that the model allows.
"""
