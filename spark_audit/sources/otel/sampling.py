"""Sampling rates of spans, and what a sample says about all messages."""

import math
from collections.abc import Iterable
from typing import Final

_Z: Final = 2.5758293035489004
"""The quantile of the normal distribution for an interval of 99%."""
_THRESHOLD_DIGITS: Final = 14


def interval(successes: int, trials: int) -> tuple[float, float]:
    """Return an interval of 99% confidence for a probability: Wilson's, with continuity correction."""
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} of {trials}")
    if trials == 0:
        return 0.0, 1.0
    n, z2 = trials, _Z * _Z
    share = successes / n
    low = high = 2 * n * share + z2
    low -= 1 + _Z * math.sqrt(max(0.0, z2 - 2 - 1 / n + 4 * share * (n * (1 - share) + 1)))
    high += 1 + _Z * math.sqrt(max(0.0, z2 + 2 - 1 / n + 4 * share * (n * (1 - share) - 1)))
    scale = 2 * (n + z2)
    return (
        0.0 if successes == 0 else max(0.0, low / scale),
        1.0 if successes == n else min(1.0, high / scale),
    )


def lost_of_all(unseen: int, due: int, rate: float, *, consistent: bool) -> tuple[int, int]:
    """Return bounds of the number of lost messages among all, sampled or not.

    `unseen` of `due` sampled messages have no sampled delivery. With consistent sampling, a delivery is
    sampled exactly if its message is. Otherwise each delivery is sampled on its own.
    """
    total = due / rate
    if consistent:
        low, high = interval(unseen, due)
        return math.floor(low * total), math.ceil(high * total)
    low, high = interval(due - unseen, due)
    delivered_min, delivered_max = min(1.0, low / rate), min(1.0, high / rate)
    return math.floor((1 - delivered_max) * total), math.ceil((1 - delivered_min) * total)


def stated_rate(trace_states: Iterable[str | None]) -> float | None:
    """Return the lowest sampling probability that trace states name (`ot=th:...` or `ot=p:...`), or None."""
    rates = [rate for state in trace_states if state for rate in [_rate_of(state)] if rate is not None]
    return min(rates, default=None)


def _rate_of(state: str) -> float | None:
    for member in state.split(","):
        vendor, _, value = member.strip().partition("=")
        if vendor != "ot":
            continue
        for part in value.split(";"):
            name, _, text = part.partition(":")
            if name == "th" and 1 <= len(text) <= _THRESHOLD_DIGITS and _is_hex(text):
                return 1 - int(text.ljust(_THRESHOLD_DIGITS, "0"), 16) / 16**_THRESHOLD_DIGITS
            if name == "p" and text.isascii() and text.isdecimal() and int(text) < 63:
                return 0.5 ** int(text)
    return None


def _is_hex(text: str) -> bool:
    return all(character in "0123456789abcdef" for character in text)
