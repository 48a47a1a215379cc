"""The convergence suite: the routes of a client, while brokers and name servers of ours stop and start.

Start with `steps.py`, which has the observations. `conformance/subjects/convergence_run.py` draws the faults
from the seed.
"""
