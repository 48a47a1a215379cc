"""Event logs held against the models by TLC: begin with check.py; models.py lists what is asked of which log.

The others turn logs into traces: of one broker's store, of a master and its slave, of name servers, of
DLedger groups.
"""
