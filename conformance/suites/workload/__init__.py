"""The suite of workloads: many concurrent clients while faults are injected, judged by their histories.

It has `suite` alone: concurrent clients have no single sequence of steps that an oracle could follow.
`conformance/adapters/workload` runs the clients, and the rules of `conformance/history` judge what they saw.
"""
