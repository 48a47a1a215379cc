"""Real clients at real brokers: what an application does, with exact counts, over kills of the broker.

Start with `scenarios.py`, the table of scenarios. `stage.py` has the broker, the clients and the counts of
one run. `matrix.py` runs scenarios for a client and a broker, and keeps the results.
"""
