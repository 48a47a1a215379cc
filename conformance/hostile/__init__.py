"""Named attacks on a broker by a peer without rights, run against any broker.

Read `attacks.py` first: it has the attacks as data, and `attack.py` says what their columns mean.
`attack_run.py` sends them, `checkers.py` judges what was seen. `suite.py` is the suite `hostile` of `mqproof
conform`, which runs only if it is named.
"""
