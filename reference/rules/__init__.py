"""Rules of the protocol as pure functions of values, which need no state machine.

Each module names the page of docs/reference/protocol/ that states its rules.
"""
