"""The suite of producers: a client, whose name server and brokers the suite plays itself
(spec/tla/QueueChoice.tla).

Begin at `session.py`, the steps that can be taken; `target.py` says what a producer must be made to do,
`checkers.py` what is judged by name, `oracle.py` what the model allows besides.
"""
