"""Simulation of messages that become visible later: half messages, timed messages and delayed messages.

`program.py` runs a program. `producers.py` sends, ends and recalls messages. `witness.py` records what
producers were answered and what the log has. `judge.py` has one check for each invariant.
"""
