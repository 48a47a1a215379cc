"""RocketMQ's remoting protocol: frames, commands, headers and bodies as objects, and connections.

Read `frame.py` and `command.py` first (bytes to objects and back, no I/O), then `channel.py`, which turns a
connection into requests and responses. `server.py` and `client.py` open connections; `request_handler.py`
finds the processor of a request.
"""
