"""Address patterns of plain_acl.yml that need no signature.

See docs/reference/protocol/access-control.md, "Accounts".
"""

import re
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Final

Match = Callable[[str], bool]
"""Returns whether a numeric IP address matches."""

_OUTSIDE_BRACES: Final = re.compile(r",(?![^{]*})")


def white_list(text: str) -> Match:
    """Return a function that matches addresses against patterns, such as `10.0.1-3.*` or `10.0.0.{1,7}`.

    Patterns are separated by commas. `*` matches every address; an empty text matches none.

    Raises:
        ValueError: a pattern is invalid; the message contains it.
    """
    patterns = [_pattern(part) for part in separate(text)]
    return lambda ip: any(matches(ip) for matches in patterns)


def separate(text: str) -> list[str]:
    """Return the patterns of a text; a comma within braces separates none."""
    return [part.strip() for part in _OUTSIDE_BRACES.split(text) if part.strip()]


def _pattern(text: str) -> Match:
    if text == "*":
        return lambda _: True
    try:
        address = str(ip_address(text))
    except ValueError:
        pass
    else:
        return lambda ip: _plain(ip) == address
    is_v6 = ":" in text
    count, base = (8, 16) if is_v6 else (4, 10)
    segments = text.split(":" if is_v6 else ".")
    if segments[-1] == "*":
        segments += ["*"] * (count - len(segments))
    if len(segments) != count:
        raise ValueError(f"{text!r} is not an address or a pattern of addresses")
    try:
        ranges = [_segment(segment, base) for segment in segments]
    except ValueError:
        raise ValueError(f"{text!r} is not an address or a pattern of addresses") from None

    def matches(ip: str) -> bool:
        parts = IPv6Address(ip.partition("%")[0]).exploded.split(":") if ":" in ip else ip.split(".")
        return len(parts) == count and all(
            any(low <= int(part, base) <= high for low, high in allowed)
            for part, allowed in zip(parts, ranges, strict=True)
        )

    return matches


def _segment(text: str, base: int) -> list[tuple[int, int]]:
    most = 255 if base == 10 else 0xFFFF
    if text == "*":
        return [(0, most)]
    found = []
    for part in text.removeprefix("{").removesuffix("}").split(","):
        low, dash, high = part.partition("-")
        first = int(low, base)
        last = int(high, base) if dash else first
        if not 0 <= first <= last <= most:
            raise ValueError
        found.append((first, last))
    return found


def _plain(ip: str) -> str:
    """Return the address in the normal form used here for comparison."""
    return str(ip_address(ip)) if ":" in ip else ip
