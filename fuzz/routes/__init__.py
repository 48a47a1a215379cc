"""Simulation of routes and of requests with replies: several brokers, name servers, producers, requesters.

`program.py` runs a program. `witness.py` listens to the events of name servers and producers, and to replies.
`judge.py` has one check for each invariant.
"""
