"""Brokers as targets of the suites that ask one broker over the wire: offsets, retry, ordering, admin.

`environments.py` has where a broker may run; the other modules have one target each, which plays producers,
consumers and administrators there. Begin at `targets.py`.
"""
