"""The runtime interfaces: clock, disk, network and randomness, each in production and simulated form.

No other part of `impl` accesses time, randomness, files or sockets. Begin with `runtime.py` (the environment
of a server), then read `disk.py` (what a disk guarantees) and `simulated_disk.py` (the crashes that it
simulates). `simulated_internet.py` simulates a network between machines.
"""
