"""The command line of the servers and of the client tools. Start with `cli.py`."""
