"""Tests what a broker starts and ends with its leadership. The store and the services are fakes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from mqproof.impl.broker.config import BrokerConfig
from mqproof.impl.broker.elected_role import ElectedRole
from mqproof.impl.broker.processors import recalls, transaction_ends
from mqproof.impl.broker.timers import LOG_READER
from mqproof.impl.dledger.config import Membership, parse_peers
from mqproof.impl.remoting.bodies import TopicConfig
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.supervision import Supervisor

MEMBER = Membership(True, "g", parse_peers("n0-10.0.0.1:1;n1-10.0.0.1:2"), "n1")
NAMES = ("delivery of delayed messages", "checks of transactions", "delivery of timers")


def _topic(name: str, queues: int, write: int | None = None) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=write or queues)


@dataclass
class _Store:
    counts: dict[str, int] = field(default_factory=dict)
    leads: bool = False
    term: int = 7
    log_begin: int = 100
    on_role: Callable[[], None] = lambda: None
    kept_from: dict[str, Callable[[], int]] = field(default_factory=dict)

    def topics(self) -> dict[str, int]:
        return self.counts

    def keep_log_from(self, reader: str, position: Callable[[], int]) -> None:
        self.kept_from[reader] = position

    def lead(self, leads: bool) -> None:
        self.leads = leads
        self.on_role()


@dataclass
class _Topics:
    known: dict[str, TopicConfig] = field(default_factory=dict)
    put: list[TopicConfig] = field(default_factory=list)
    refuses: Exception | None = None
    on_put: Callable[[], None] = lambda: None

    def get(self, name: str) -> TopicConfig | None:
        return self.known.get(name)

    async def put_all(self, topics: Iterable[TopicConfig]) -> None:
        self.put += topics
        self.on_put()
        if self.refuses is not None:
            raise self.refuses


class _Services:
    """The services of a member with the parts that a role uses; `calls` has what was done, in order."""

    def __init__(self) -> None:
        config = BrokerConfig(store_directory="/s", membership=MEMBER, default_topic_queues=4)
        self.config = config.with_role(leads=False)
        self.topics = _Topics()
        self.calls: list[str] = []
        self.offsets = self.runtime = self.delays = self
        self.supervisor = Supervisor()
        self.address = "here"

    def lead(self) -> None:
        self.calls.append("lead")

    def follow(self) -> None:
        self.calls.append("follow")

    async def run(self, of: object) -> None:
        self.calls.append(f"run {of}")
        await asyncio.Event().wait()


@dataclass
class _Site:
    store: _Store
    services: _Services
    registered: list[bool] = field(default_factory=list)


def _play(
    scenario: Callable[[_Site], Awaitable[None]], monkeypatch: pytest.MonkeyPatch, **counts: int
) -> _Site:
    site = _Site(_Store(counts), _Services())

    async def forever(services: object) -> None:
        assert services is site.services
        await asyncio.Event().wait()

    monkeypatch.setattr(transaction_ends, "run", forever)
    monkeypatch.setattr(recalls, "run", forever)

    async def main() -> None:
        parts: tuple[Any, Any] = (site.store, site.services)
        role = ElectedRole(*parts, lambda: site.registered.append(site.store.leads))
        running = asyncio.create_task(role.run())
        await asyncio.sleep(0)
        await scenario(site)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await asyncio.sleep(0)
        assert site.services.supervisor.running == frozenset(), "the end of the role ends its tasks"

    asyncio.run(main())
    return site


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_leader_runs_the_tasks_of_a_master_until_it_leads_no_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(site: _Site) -> None:
        services = site.services
        assert services.supervisor.running == frozenset()
        site.store.lead(True)
        assert services.config.broker_id == 2, "its topics are not there yet"
        await _turns()
        assert services.supervisor.running == frozenset(NAMES)
        assert services.calls == ["lead", "run here"]
        assert services.config.broker_id == 0
        site.store.lead(False)
        assert services.config.broker_id == 2
        assert services.calls == ["lead", "run here", "follow"]
        await _turns()
        assert services.supervisor.running == frozenset()
        site.store.lead(True)
        await _turns()
        assert services.supervisor.running == frozenset(NAMES)

    with caplog.at_level(logging.WARNING):
        site = _play(scenario, monkeypatch)
    node = site.services.config.node
    assert caplog.messages == [
        f"{node} leads its group in term 7",
        f"{node} does not lead its group any more",
        f"{node} leads its group in term 7",
    ]
    assert site.registered == [False, True, False, True], "at the start, and after each change"


def test_a_leader_keeps_its_log_until_its_timers_know_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(site: _Site) -> None:
        site.store.lead(False)
        assert site.store.kept_from == {}
        site.store.lead(True)
        assert {name: position() for name, position in site.store.kept_from.items()} == {LOG_READER: 100}

    _play(scenario, monkeypatch)


def test_a_leadership_that_ends_while_topics_are_created_starts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(site: _Site) -> None:
        site.services.topics.on_put = lambda: site.store.lead(False)
        site.store.lead(True)
        await _turns()
        assert site.services.supervisor.running == frozenset()
        assert site.services.calls == ["follow"]

    _play(scenario, monkeypatch)


def test_topics_of_the_log_that_the_table_lacks_are_created(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(site: _Site) -> None:
        site.services.topics.known = {
            "equal": _topic("equal", 3),
            "fewer": _topic("fewer", 3, write=2),
            "more": _topic("more", 5),
        }
        site.store.lead(True)
        await _turns()

    counts = {"equal": 3, "fewer": 4, "more": 4, "small": 2, "large": 9, "%RETRY%G": 1, "%DLQ%G": 6}
    site = _play(scenario, monkeypatch, **counts)
    assert site.services.topics.put == [
        _with_reads(_topic("fewer", 3, write=2), 4),
        _topic("small", 4),
        _topic("large", 9),
        _topic("%RETRY%G", 1),
        _topic("%DLQ%G", 6),
    ]


def _with_reads(topic: TopicConfig, reads: int) -> TopicConfig:
    return TopicConfig(
        topic_name=topic.topic_name, read_queue_nums=reads, write_queue_nums=topic.write_queue_nums
    )


@pytest.mark.parametrize("error", [OSError("full"), RefusedError(ResponseCode.SYSTEM_ERROR, "full")])
def test_a_leader_works_without_the_topics_that_cannot_be_created(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(site: _Site) -> None:
        site.services.topics.refuses = error
        site.store.lead(True)
        await _turns()
        assert site.services.supervisor.running == frozenset(NAMES)

    _play(scenario, monkeypatch)
    assert caplog.messages[0] == f"topics of the log cannot be created: {error}"
