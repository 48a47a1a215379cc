"""Name servers as targets of the routing suite (conformance/suites/routing). Begin at `name_servers.py`."""
