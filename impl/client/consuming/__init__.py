"""Consumers: push, pull and lite pull, with rebalance, offsets, queue locks and redelivery.

Start with `push_consumer.py`.
"""
