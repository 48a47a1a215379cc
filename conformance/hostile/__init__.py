"""Named attacks on a broker by a peer without rights, run against any broker.

Read `attacks.py` first: it has the attacks as data. `attack_run.py` sends them and judges the broker.
`suite.py` is the suite `hostile` of `mqproof conform`, which runs only if it is named.
"""
