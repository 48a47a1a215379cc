"""The suite of delivery and rebalance: one broker and a consumer group, whose members the suite plays itself
(spec/tla/Group.tla).

Begin at `session.py`, the steps that can be taken; `target.py` says what a broker must be made to do,
`checkers.py` what is judged by name, `oracle.py` what the model allows besides.
"""
