"""Tests the registration of filter servers (docs/reference/protocol/filters.md, "Filter servers")."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mqproof.impl.broker.processors.filter_registration import register
from mqproof.impl.broker.state.filter_servers import FilterServers
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import RegisterFilterServerRequest, RegisterFilterServerResponse
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated


class Site:
    """A broker's filter servers, and how often their change was reported to the name servers."""

    def __init__(self, *, is_enabled: bool = True) -> None:
        self.reports = 0
        self.services = SimpleNamespace(
            config=SimpleNamespace(filter_servers=is_enabled, name="broker-a", broker_id=3),
            filter_servers=FilterServers(),
            topics=SimpleNamespace(on_change=self._report),
        )

    def _report(self) -> None:
        self.reports += 1

    def register(self, address: str, channel: str = "c1") -> RegisterFilterServerResponse:
        fields = headers.write(RegisterFilterServerRequest(address))
        request = new_request(RequestCode.REGISTER_FILTER_SERVER, fields)

        async def main() -> RegisterFilterServerResponse:
            await asyncio.sleep(100)
            answer: Any = register(cast("Any", self.services), request, cast("Any", channel))
            return headers.read(RegisterFilterServerResponse, answer.fields)

        return run_simulated(main(), SimulatedLoop())


def test_only_a_change_of_the_addresses_is_reported_to_the_name_servers() -> None:
    site = Site()
    assert site.register("10.0.0.1:7000") == RegisterFilterServerResponse("broker-a", 3)
    site.register("10.0.0.1:7000")
    site.register("10.0.0.1:7000", "c2")
    assert (site.reports, site.services.filter_servers.addresses()) == (1, ["10.0.0.1:7000"])
    site.register("10.0.0.1:7001")
    assert site.reports == 2


def test_a_filter_server_is_silent_since_its_last_registration() -> None:
    site = Site()
    site.register("10.0.0.1:7000")  # at 100 s
    servers: FilterServers = site.services.filter_servers
    assert not servers.drop_silent(130.0)
    assert servers.drop_silent(130.001)


@pytest.mark.parametrize(
    ("is_enabled", "address", "remark"),
    [
        (False, "10.0.0.1:7000", "the broker has no filter servers: its filterServerEnable is false"),
        (True, "nowhere", "nowhere"),
    ],
)
def test_a_registration_that_is_not_accepted_is_refused(is_enabled: bool, address: str, remark: str) -> None:
    site = Site(is_enabled=is_enabled)
    with pytest.raises(RefusedError, match=remark) as refused:
        site.register(address)
    assert (refused.value.code, site.reports) == (ResponseCode.SYSTEM_ERROR, 0)


def test_a_broker_has_at_most_16_filter_servers() -> None:
    site = Site()
    for number in range(16):
        site.register(f"10.0.0.1:{7000 + number}", f"c{number}")
    with pytest.raises(RefusedError, match="16 filter servers are registered") as refused:
        site.register("10.0.0.1:8000", "another")
    assert refused.value.code == ResponseCode.SYSTEM_ERROR
    site.register("10.0.0.1:8000", "c1")
    assert "10.0.0.1:8000" in site.services.filter_servers.addresses()
