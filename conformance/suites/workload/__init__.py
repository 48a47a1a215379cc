"""The workload suite: many concurrent clients while faults are injected, judged by their histories.

It has only `suite`: concurrent clients have no single sequence of steps that an oracle could follow.
`conformance/adapters/workload` runs the clients, and the rules of `conformance/history` judge their
observations.
"""
