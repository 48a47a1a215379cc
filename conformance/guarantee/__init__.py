"""The guarantee matrix on running brokers: each entry of spec/guarantee is tested on our brokers.

An entry that is not safe replays the counterexample of the model. Start with `on_simulated_brokers.py`, which
runs all entries. `conformance/subjects/guarantee_entry.py` runs one entry on brokers in simulated time, and
`on_processes.py` uses processes with real sockets and files.
"""
