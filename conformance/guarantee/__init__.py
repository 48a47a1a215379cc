"""The guarantee matrix on running brokers: each entry of spec/guarantee is tried on brokers of ours.

An entry that is not safe replays the counterexample of the model. Start with `live.py`, which runs all
entries; `conformance/subjects/guarantee_entry.py` is what one entry does to brokers in simulated time, and
`on_processes.py` uses processes on real sockets and files.
"""
