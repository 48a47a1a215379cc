"""Finds out what happened to a message, or why a group receives nothing: `mqproof diagnose`.

Read `causes.py` first: all answers. `cluster.py` reads a running cluster and `log_files.py` event logs; both
only read. `message_rules.py`, `group_rules.py` and `backlog_rules.py` turn the evidence into answers without
any input or output. See docs/how-to/diagnose.md.
"""
