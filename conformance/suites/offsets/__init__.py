"""The suite of pulls and offsets: one broker, whose producer and consumer the suite plays itself.

Begin at `session.py`, the steps that can be taken; `target.py` says what a broker must be made to do,
`checkers.py` what is judged by name, `oracle.py` what the model (reference/pulling.py) allows besides.
"""
