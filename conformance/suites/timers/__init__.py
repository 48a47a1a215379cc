"""The suite of timers: one broker, with messages that wait for a time, are recalled, and survive faults.

Start with `session.py`, which has the steps of a run. `target.py` lists the operations that a broker must
offer, `checkers.py` has the named invariants, and `oracle.py` has the states that the model
(reference/timers.py) allows.
"""
