"""Brokers as targets of the suites that send their own requests to one broker; `EXAMINEES` has these suites.

`environments.py` has the environments in which a broker may run. The other modules have one target each,
which simulates producers, consumers and administrators there. Start with `factories.py`.
"""
