"""Name servers as targets of the routing suite (conformance/routing). Begin at `name_servers.py`."""
