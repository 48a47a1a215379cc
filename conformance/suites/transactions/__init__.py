"""The suite of transactions: one broker, with a producer and a consumer that the suite simulates.

Start with `session.py`, which has the steps of a run. `target.py` lists the operations that a broker must
offer, `checkers.py` has the named invariants, and `oracle.py` has the states that the model
(reference/transactions.py) allows.
"""
