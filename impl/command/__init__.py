"""The command line of the servers and of the client tools `send` and `consume`. Start with `cli.py`."""
