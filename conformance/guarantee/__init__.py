"""The guarantee matrix on the running broker: each cell of spec/guarantee lived through and, where it is not
safe, the model's own counterexample replayed.

Begin at `live.py`, which goes through all cells; what one cell does to brokers is
`conformance/subjects/guarantee_entry.py`. `processes.py` does so with processes on real sockets and files.
"""
