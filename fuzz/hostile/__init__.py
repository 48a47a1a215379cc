"""A stranger and a faulty member attack a simulated cluster, while honest clients must be served.

Read `program.py` first: an input is a program of attacks. `judge.py` has the invariants.
"""
