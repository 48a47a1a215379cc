"""The clean-room broker: name server, broker, store and client that speak RocketMQ's protocol and formats.

Begin with `cli.py` for what can be run; then `remoting/` (the wire), `store/` (the disk), `broker/` between
the two, `namesrv/` and `client/`. Everything that touches the world goes through `runtime/`.
"""
