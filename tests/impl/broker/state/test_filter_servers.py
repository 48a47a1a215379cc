"""Tests the filter servers of a broker: their number, their addresses, and when one is forgotten."""

import pytest

from mqproof.impl.broker.state.filter_servers import FilterServers, FilterServersFullError


def test_the_seventeenth_filter_server_is_refused_and_a_known_one_is_not() -> None:
    servers = FilterServers()
    for number in range(16):
        assert servers.register(number, f"10.0.0.{number}:1", 0.0)
    with pytest.raises(FilterServersFullError, match="16 filter servers"):
        servers.register(16, "10.0.0.16:1", 0.0)
    assert servers.register(3, "10.0.0.99:1", 0.0), "a known connection may have another address"
    assert servers.closed(3)
    assert servers.register(16, "10.0.0.16:1", 0.0)
    assert len(servers.addresses()) == 16


def test_only_new_addresses_are_reported_and_each_once() -> None:
    servers = FilterServers()
    assert servers.register("a", "10.0.0.2:1", 0.0)
    assert servers.register("b", "10.0.0.1:1", 0.0)
    assert not servers.register("b", "10.0.0.1:1", 1.0)
    assert not servers.register("c", "10.0.0.1:1", 1.0)
    assert servers.addresses() == ["10.0.0.1:1", "10.0.0.2:1"]
    assert not servers.closed("unknown")


def test_a_filter_server_is_forgotten_after_more_than_thirty_seconds_of_silence() -> None:
    servers = FilterServers()
    servers.register("a", "10.0.0.1:1", 0.0)
    servers.register("b", "10.0.0.2:1", 0.5)
    assert not servers.drop_silent(30.0)
    assert servers.drop_silent(30.1)
    assert servers.addresses() == ["10.0.0.2:1"]
    servers.register("b", "10.0.0.2:1", 20.0)
    assert not servers.drop_silent(50.0)
    assert servers.drop_silent(50.1)
    assert not servers.drop_silent(1000.0)
