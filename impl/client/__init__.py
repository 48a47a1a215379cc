"""The client: producers and consumers that share one session's connections, routes and heartbeats.

Read docs/how-to/client.md first, which has an example of each, then `model.py`, which has the types that
calls return. Then read `producer.py`, and `pull_consumer.py`, which keeps no state. `push_consumer.py` and
`lite_pull_consumer.py` divide their group's queues (`rebalance.py`), pull ahead (`assigned_queues.py`) and
keep offsets (`offset_store.py`). For code without an event loop, use `blocking.py`.
"""
