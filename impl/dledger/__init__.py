"""DLedger: an elected group of members that keeps one log of messages.

See docs/reference/protocol/dledger.md, "DLedger". Read `core.py` first. It is the Raft state machine:
messages and time go in, messages and changes come out, without any I/O. Its two halves are `election.py` and
`log_replication.py`; `state.py` has the state that both use. `ledger.py` and `ballot_file.py` keep a member's
state on disk. `member.py` connects them to the core, and `node.py` runs a member on a runtime's network, disk
and clock.
"""
