"""The workload suite: many concurrent clients while faults are injected, judged by their histories.

Concurrent clients have no single sequence of steps that an oracle could follow or a machine could draw.
`conformance/adapters/workload` runs the clients, and the rules of `conformance/history` judge their
observations.
"""
