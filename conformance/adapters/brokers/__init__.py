"""Brokers as targets of the suites offsets, retry, ordering, delivery and admin, which use one broker.

`environments.py` has the environments in which a broker may run. The other modules have one target each,
which simulates producers, consumers and administrators there. Start with `factories.py`.
"""
