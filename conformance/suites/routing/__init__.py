"""The routing suite: a name server, with brokers and clients that the suite simulates (spec/tla/Routing.tla).

Start with `session.py`, which has the steps of a run. `target.py` lists the operations that a name server
must offer, `checkers.py` has the named invariants, and `oracle.py` has the states that the model allows.
"""
