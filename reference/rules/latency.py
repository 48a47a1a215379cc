"""How long a producer avoids a broker after an attempt, as in 5.x.

See docs/reference/protocol/clients.md, "Queue choice".
"""

from typing import Final

RESTS_MS: Final = (
    *((50, 0), (100, 0), (550, 2000), (1800, 5000)),
    *((3000, 6000), (5000, 10_000), (15_000, 30_000)),
)
"""Pairs: the duration of an attempt, and how long its broker is avoided.

The largest duration reached applies.
"""

FAILURE_MS: Final = 10_000
"""A failed attempt counts as one of this duration."""


def rest_ms(took_ms: float) -> int:
    return next((rest for least, rest in reversed(RESTS_MS) if took_ms >= least), 0)
