"""The guarantee matrix on running brokers: each cell of spec/guarantee is tested on our brokers.

In a cell that is not safe, the counterexample of the model is replayed. Start with
`on_simulated_brokers.py`, which tests all cells. `conformance/subjects/guarantee_entry.py` tests one cell on
brokers in simulated time, and `on_processes.py` uses processes with real sockets and files.
"""
