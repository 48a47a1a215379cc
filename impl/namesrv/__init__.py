"""The name server: brokers register here, and clients look up the brokers of a topic here.

Read `route_table.py` first: it has the tables and their rules, without any I/O. `server.py` connects them to
the network.
"""
