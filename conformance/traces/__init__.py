"""Checks event logs against the models with TLC. Start with `check.py`; `models.py` lists the models.

The other modules turn logs into traces: of one broker's store, of a master and its slave, of name servers, of
DLedger groups. `round_trip.py` uses them to say what is wrong where a suite found a violation.
"""
