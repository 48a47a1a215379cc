"""Brokers as targets of the suites that use one broker over the wire: offsets, retry, ordering, delivery,
admin.

`environments.py` has the environments in which a broker may run. The other modules have one target each,
which simulates producers, consumers and administrators there. Start with `factories.py`.
"""
