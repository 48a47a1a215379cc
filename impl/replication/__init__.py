"""A master's log, streamed to its slaves (docs/protocol.md, "Replication").

Begin with `stream`, the bytes, and `rules`, what must hold; `feed` is the master's end of a connection and
`follow` the slave's, both without sockets, clock or files; `server` and `client` give them sockets and time.
"""
