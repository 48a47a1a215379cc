"""The chaos proxy: between the clients and a cluster, it injects faults which the specification permits.

Read `fault_table.py` first: what it can do, and which catalogue entry permits it. `plan.py` and `draws.py`
say when it does so, and `effects.py` what becomes of one request. `proxy.py`, `broker_port.py` and
`relayed_connection.py` move the frames. `capture.py` is the record of what the clients saw.
"""
