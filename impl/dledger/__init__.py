"""DLedger: an elected group that keeps one log of messages, as docs/protocol.md, "DLedger", has it.

Begin with `core.py`, the Raft state machine: messages and time in, messages and changes out, no world
touched; its two halves are `election.py` and `replication.py`, what both know is `state.py`. `ledger.py` and
`ballot_file.py` are what a member keeps on disk, `member.py` binds them to the core, and `node.py` runs a
member on a runtime's network, disk and clock.
"""
