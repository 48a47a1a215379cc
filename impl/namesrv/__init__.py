"""The name server: brokers register here, clients ask here where a topic lives.

Begin with `route_table.py`, the tables and their rules without any I/O; `server.py` puts them on the network.
"""
