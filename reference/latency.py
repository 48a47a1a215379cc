"""How long a producer rests a broker after an attempt: "Queue choice" in docs/protocol.md, as 5.x has it."""

from typing import Final

RESTS_MS: Final = (
    *((50, 0), (100, 0), (550, 2000), (1800, 5000)),
    *((3000, 6000), (5000, 10_000), (15_000, 30_000)),
)
"""(an attempt that took so long, rests its broker so long); the largest that is reached counts."""

FAILURE_MS: Final = 10_000
"""A failed attempt counts to have taken that long."""


def rest_ms(took_ms: float) -> int:
    return next((rest for least, rest in reversed(RESTS_MS) if took_ms >= least), 0)
