"""Tests patterns of addresses. Source: docs/reference/protocol/access-control.md, "Accounts"."""

import pytest

from mqproof.impl.access.white_list import white_list


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("10.0.0.1", ["10.0.0.1"], ["10.0.0.2", "::1"]),
        ("192.168.0.*", ["192.168.0.0", "192.168.0.255"], ["192.168.1.0", "fe80::1"]),
        ("192.168.*", ["192.168.0.1", "192.168.9.9"], ["192.169.0.1"]),
        ("10.0.0.{1,7}", ["10.0.0.1", "10.0.0.7"], ["10.0.0.2"]),
        ("10.0.1-3.*", ["10.0.1.9", "10.0.3.9"], ["10.0.4.9", "10.0.0.9"]),
        ("10.0.0.1, 10.0.0.{3,4},::1", ["10.0.0.1", "10.0.0.4", "::1"], ["10.0.0.2", "::2"]),
        ("0:0:0:0:0:0:0:1", ["::1"], ["::2", "10.0.0.1"]),
        ("fe80:0:0:0:*", ["fe80::1", "fe80::ffff:1", "fe80::1%eth0"], ["fe81::1", "10.0.0.1"]),
        ("2001:db8:0:0:0:0:0:1-ff", ["2001:db8::ff"], ["2001:db8::100"]),
        ("*", ["10.0.0.1", "::1"], []),
        ("", [], ["10.0.0.1", "::1"]),
        (" , ", [], ["10.0.0.1"]),
    ],
)
def test_patterns_match_addresses(pattern: str, inside: list[str], outside: list[str]) -> None:
    matches = white_list(pattern)
    assert [ip for ip in inside if not matches(ip)] == []
    assert [ip for ip in outside if matches(ip)] == []


@pytest.mark.parametrize(
    "pattern", ["10.0.0", "10.0.0.256", "10.0.0.x", "host", "10.0.0.9-1", "10.0.*.1.1", "1:2:3", "10.0.0.{a}"]
)
def test_an_invalid_pattern_is_reported(pattern: str) -> None:
    with pytest.raises(ValueError, match="is not an address or a pattern"):
        white_list(pattern)
