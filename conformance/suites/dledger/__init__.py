"""The dledger suite: a group that elects its leader, as a client sees it at the ports of its members.

Start with `steps.py`, which has the observations. `conformance/subjects/group_run.py` draws the appends and
the faults from the seed. The client sends METADATA, GET, APPEND and LEADERSHIP_TRANSFER. It pretends to be a
member when it asks for a vote or for the end of a log.
"""
