"""RocketMQ's remoting protocol: frames, commands, headers and bodies as objects, and connections to use them.

Begin with `frame.py` and `command.py` (bytes to objects and back, no I/O), then `channel.py`, where a
connection becomes requests and responses; `server.py` and `client.py` open connections, `dispatch.py` finds
the processor of a request.
"""
