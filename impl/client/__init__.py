"""The client: producers and consumers that share one session's connections, routes and heartbeats.

Read docs/how-to/client.md first, which has an example of each, then `model.py`, which has the types that
calls return. Then read `producing/producer.py`, and `consuming/pull_consumer.py`, which keeps no state.
`consuming/push_consumer.py` and `consuming/lite_pull_consumer.py` divide their group's queues
(`consuming/rebalance.py`), pull ahead (`consuming/assigned_queues.py`) and keep offsets
(`consuming/offset_store.py`). For code without an event loop, use `blocking.py`.
"""
