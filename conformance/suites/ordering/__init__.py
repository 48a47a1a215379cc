"""The suite of orderly consumption: a broker's queue locks, whose members the suite plays itself
(spec/tla/OrderLock.tla).

Begin at `session.py`, the steps that can be taken; `target.py` says what a broker must be made to do,
`checkers.py` what is judged by name, `oracle.py` what the model allows besides.
"""
