"""Tests the chaos proxy between Apache's clients and Apache's servers: it is lawful, and loses nothing."""

from contextlib import suppress
from pathlib import Path

import pytest

from mqproof.conformance.adapters.apache.java_clients import java_client
from mqproof.conformance.adapters.apache.servers import ApacheServer
from mqproof.conformance.adapters.clients.driver_client import DriverClient, DriverError
from mqproof.impl.runtime.network import Address
from mqproof.report.model import Verdict
from mqproof.testing import ThreadedChaos

pytestmark = pytest.mark.apache

FAULTS = (
    "send_stored_twice=0.2",
    "send_busy=0.05",
    "pull_fewer=0.5",
    "pull_delayed=0.2",
    "queues_reordered=0.3",
    "pull_retry=0.2",
    "slave_suggested=0.3",
    "commit_lost=0.5",
    "notification_lost=0.3",
    "rebalance_storm=0.5",
    "member_joins=0.3",
    "route_stale=0.5",
    "heartbeat_busy=0.3",
    "offset_query_busy=0.2",
)


def _send(client: DriverClient, topic: str) -> set[str]:
    """Send 20 messages and ignore errors. Returns the ids of those that are certainly stored."""
    stored: set[str] = set()
    for _ in range(20):
        with suppress(DriverError):
            stored |= {event["msgId"] for event in client.send(topic, 1)}
    return stored


@pytest.mark.parametrize("mode", ["concurrent", "orderly"])
def test_java_clients_receive_every_message_through_the_proxy(
    apache: tuple[ApacheServer, ApacheServer], release: str, mode: str, tmp_path: Path
) -> None:
    names, _ = apache
    topic = f"chaos-{mode}-{release.replace('.', '_')}"
    # Java clients of 4.9 wait for the answer until their timeout, although its connection was closed.
    losses = () if release.startswith("4.") else ("send_answer_lost=0.1", "connection_cut=0.01")
    chaos = ThreadedChaos(str(names.address), *FAULTS, *losses, seed=5)
    with chaos, java_client(release, tmp_path, Address.parse(chaos.name_server)) as client:
        stored = _send(client, topic)
        client.subscribe(topic, topic, topic, mode=mode)
        stored |= _send(client, topic)
        got = client.wait_for(1, topic)
        chaos.calm()
        while not stored <= {event["msgId"] for event in got}:
            got = client.wait_for(len(got) + 1, topic)
        client.close(topic)
        injected = {fault.fault for fault in chaos.injected}
    assert len(injected) >= 5
    assert chaos.report is not None
    verdicts = [result.verdict for result in chaos.report.results]
    assert verdicts.count(Verdict.HELD) >= 15
    assert Verdict.VIOLATED not in verdicts
