"""Replication of a master's log to its slaves (docs/reference/protocol/replication.md, "Replication").

Begin with `stream`, the byte format, and `rules`, the invariants. `feed` is the master's end of a connection
and `follow` the slave's end; both work without sockets, clock or files. `server` and `client` add sockets and
timers.
"""
