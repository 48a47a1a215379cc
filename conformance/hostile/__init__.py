"""Named attacks on a broker by a peer without rights, run against any broker.

Read `attacks.py` first: it has the attacks as data. `runner.py` sends them and judges the broker; `suite.py`
is the suite `hostile` of `mqproof conform`. It runs only if it is named, because it overloads the broker.
"""
