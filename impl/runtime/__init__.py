"""The seam: clock, disk, network and randomness, each with a production side and a simulated side.

Nothing else in `impl` touches time, chance, files or sockets. Begin with `runtime.py` (what a server is
given), then `disk.py` (the promises a disk makes) and `simulated_disk.py` (the crashes it may suffer);
`simulated_internet.py` is what a network between machines may do.
"""
