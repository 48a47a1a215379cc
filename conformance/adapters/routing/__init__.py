"""Name servers as targets of the routing suite (conformance/suites/routing). Start with `name_servers.py`."""
