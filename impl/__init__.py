"""The clean-room broker: name server, broker, store and client that speak RocketMQ's protocol and formats.

Read `command/cli.py` first: it lists the programs. Then read `remoting/` (the wire), `store/` (the disk),
`broker/` (which connects the two), `namesrv/` and `client/`. All I/O and all use of the clock go through
`runtime/`. `chaos/` stands between clients and any cluster.
"""
