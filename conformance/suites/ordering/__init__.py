"""The suite of orderly consumption: a broker's queue locks (spec/tla/OrderLock.tla).

The suite simulates the members itself. Start with `session.py`, which has the steps of a run. `target.py`
lists the operations that a broker must offer, `checkers.py` has the named invariants, and `oracle.py` has the
states that the model allows.
"""
