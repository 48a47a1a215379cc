"""The producer suite: a client, with a simulated name server and brokers (spec/tla/QueueChoice.tla).

Start with `session.py`, which has the steps of a run. `target.py` lists the operations that a producer must
offer, `checkers.py` has the named invariants, and `oracle.py` has the states that the model allows.
"""
