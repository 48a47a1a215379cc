"""The suite of administration: topics, groups, offsets and look-ups of one broker.

Begin at `session.py`, the steps that can be taken; `target.py` says what a broker must be made to do,
`checkers.py` what is judged by name, `oracle.py` what the model (reference/administration.py) allows besides.
"""
