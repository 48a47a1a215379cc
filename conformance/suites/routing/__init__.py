"""The routing suite: a name server, whose brokers and clients the suite plays itself (spec/tla/Routing.tla).

Begin at `session.py`, the steps that can be taken; `target.py` says what a name server must be made to do,
`checkers.py` what is judged by name, `oracle.py` what the model allows besides.
"""
