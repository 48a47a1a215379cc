"""The suite of requests and replies: one broker, requesting clients, and a consumer that replies.

Start with `session.py`, which has the steps of a run. `target.py` lists the operations that a broker with its
clients must offer, `checkers.py` has the named invariants, and `oracle.py` has the states that the model
(reference/request_reply.py) allows.
"""
