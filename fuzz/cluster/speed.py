"""Measures how fast a group of three whole brokers is simulated, with its clients and judges.

`python -m mqproof.fuzz.cluster.speed` prints simulated seconds per second of processor time, for some loads.
"""

import time
from collections import Counter
from typing import Final

from mqproof.fuzz.cluster.faults import fault
from mqproof.fuzz.cluster.program import Run

_LOADS: Final = ((1, 0), (1, 1), (4, 0), (4, 1), (4, 3))
"""Pairs: the number of producers, and the index of the interval between sends (2, 1, 0.5 or 0.3 s)."""


def program(producers: int, pace: int) -> bytes:
    """Return a program that runs a group under this load for over a minute, with one clock step."""
    shape = 192 | 8 * (producers - 1)
    return bytes((1, 0, 0, 0, shape, 16 * pace)) + fault("step_clock", 1, 255, 0)


def main() -> None:
    print("| messages a second | simulated seconds a CPU second |\n|---|---|")
    for producers, pace in _LOADS:
        run = Run(program(producers, pace), Counter())
        began_s = time.process_time()
        run.run()
        took_s = time.process_time() - began_s
        print(f"| {run.sends / run.seconds:.1f} | {run.seconds / took_s:.0f} |")


if __name__ == "__main__":
    main()
