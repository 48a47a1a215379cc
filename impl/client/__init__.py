"""The client: a producer and a pull consumer on a shared session of connections, routes and heartbeats.

Begin with `model.py`, what a send and a pull give back; then `producer.py` and `pull_consumer.py`. Without an
event loop of your own, use `blocking.py`.
"""
