"""Checks event logs against the models with TLC. Start with `check.py`; `models.py` lists the models.

The other modules convert logs into traces: of one broker's store, of a master and its slave, of name servers,
of DLedger groups. `round_trip.py` uses them to classify the violations that a suite found.
"""
