"""Sampling rates of spans, and what a sample says about all messages."""

import math
from collections.abc import Iterable
from typing import Final

_TAIL: Final = 0.005
"""The probability beyond each end of an interval of 99%."""
_HALVINGS: Final = 60
_TERMS_MAX: Final = 100_000
_THRESHOLD_DIGITS: Final = 14


def interval(successes: int, trials: int) -> tuple[float, float]:
    """Return an interval of 99% confidence for a probability: the exact one, of Clopper and Pearson.

    Approximations, such as Wilson's, contain a rare event's probability too seldom.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} of {trials}")
    failures = trials - successes
    low = 0.0 if successes == 0 else _beta_quantile(_TAIL, successes, failures + 1)
    high = 1.0 if failures == 0 else 1 - _beta_quantile(_TAIL, failures, successes + 1)
    return low, high


def _beta_quantile(share: float, a: int, b: int) -> float:
    """Return x with I_x(a, b) = share: that many trials out of a + b - 1 succeed at least `a` times."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _incomplete_beta(middle, a, b) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _incomplete_beta(x: float, a: int, b: int) -> float:
    """Return the regularised incomplete beta function I_x(a, b), by its continued fraction."""
    if x * (a + b + 2) > a + 1:
        return 1 - _incomplete_beta(1 - x, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    upper, lower = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = lower
    for m in range(1, _TERMS_MAX):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = value
        for term in (even, odd):
            lower = 1 / (1 + term * lower)
            upper = 1 + term / upper
            value *= lower * upper
        if abs(value - before) < 1e-12 * value:
            break
    return math.exp(front) * value / a


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
