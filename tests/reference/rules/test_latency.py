"""The rest time of a slow or failed broker (docs/reference/protocol/clients.md, "Queue choice")."""

import pytest

from mqproof.reference.rules.latency import FAILURE_MS, rest_ms


@pytest.mark.parametrize(
    ("took_ms", "rested_ms"),
    [(0, 0), (549, 0), (550, 2000), (1799, 2000), (1800, 5000), (FAILURE_MS, 10_000), (15_000, 30_000)],
)
def test_the_rest_time_is_that_of_the_largest_threshold_reached(took_ms: int, rested_ms: int) -> None:
    assert rest_ms(took_ms) == rested_ms
