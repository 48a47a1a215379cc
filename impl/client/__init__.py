"""The client: producers and consumers on a shared session of connections, routes and heartbeats.

Begin with docs/client.md, which has an example of each, and `model.py`, what calls give back. Then
`producer.py`; `pull_consumer.py`, which keeps nothing; `push_consumer.py` and `lite_pull_consumer.py`, which
share their group's queues (`rebalance.py`), pull ahead (`assigned.py`) and keep offsets (`offset_store.py`).
Without an event loop of your own, use `blocking.py`.
"""
