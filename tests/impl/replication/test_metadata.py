"""Tests a slave whose master does not answer, or has no data yet."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, cast

import pytest

from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import AllTopics, SubscriptionGroups
from mqproof.impl.remoting.channel import RemotingError, RequestTimeoutError
from mqproof.impl.remoting.client import RemotingClient
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import UpdateOffsetRequest
from mqproof.impl.replication.metadata import MetadataSync
from mqproof.impl.runtime.network import Address

MASTER = Address("127.0.0.1", 10911)
BODIES = {
    RequestCode.GET_ALL_TOPIC_CONFIG: b'{"dataVersion":{},"topicConfigTable":{}}',
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: b'{"dataVersion":{},"subscriptionGroupTable":{}}',
}
"""A master without offsets answers without a body; there are always topics and groups."""


SILENT = -1
"""Stands for a master that does not answer in time."""


class Asked:
    """A client whose requests are answered with one code, or not at all."""

    code: int | None = None
    closed = 0

    def channel(self, _address: Address) -> "Asked":
        return self

    def abort(self) -> None:
        self.closed += 1

    async def invoke(self, _address: Address, request: Command, _timeout_s: float) -> Command:
        if self.code is None:
            raise RemotingError("it does not answer")
        if self.code == SILENT:
            raise RequestTimeoutError("no answer in time")
        return request.answer(self.code, body=BODIES.get(RequestCode(request.code), b""))


class Adopted:
    """A slave's tables, which record the adopted data."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    def correct_deletions(self, topics: AllTopics) -> None:
        self.got.append(topics)

    async def adopt_topics(self, topics: AllTopics) -> None:
        self.got.append(topics)

    async def adopt_groups(self, groups: SubscriptionGroups) -> None:
        self.got.append(groups)

    async def adopt_delays(self, offsets: Mapping[int, int]) -> None:
        self.got.append(offsets)

    def merge_offsets(self, table: Mapping[str, Mapping[int, int]]) -> None:
        self.got.append(table)

    def newer_commits(self, _table: Mapping[str, Mapping[int, int]]) -> list[UpdateOffsetRequest]:
        return []

    def mark_sent(self, _commit: UpdateOffsetRequest) -> None: ...


def play(*codes: int | None) -> list[Any]:
    """Run one round for each code, where None is no answer. Returns the adopted data."""
    asked, tables = Asked(), Adopted()
    sync = MetadataSync(cast(RemotingClient, asked), tables)
    sync.master = MASTER

    async def rounds() -> None:
        for code in codes:
            asked.code = code
            await sync.sync()

    asyncio.run(rounds())
    return tables.got


def test_a_connection_without_an_answer_is_closed_so_that_the_next_round_makes_a_new_one() -> None:
    asked = Asked()
    sync = MetadataSync(cast(RemotingClient, asked), Adopted())
    sync.master = MASTER
    for code, closed in ((ResponseCode.SUCCESS, 0), (None, 0), (SILENT, 1)):
        asked.code = code
        asyncio.run(sync.sync())
        assert asked.closed == closed


def test_a_master_without_offsets_answers_without_a_body() -> None:
    topics, groups, offsets, delays = play(ResponseCode.SUCCESS)
    assert topics.topic_config_table == {}
    assert groups.subscription_group_table == {}
    assert offsets == delays == {}


def test_tables_that_a_master_refuses_to_send_are_not_adopted() -> None:
    assert play(ResponseCode.SYSTEM_ERROR) == []


@pytest.mark.parametrize(
    ("master", "code", "expected"),
    [
        (None, ResponseCode.SUCCESS, "no name server reports"),
        (MASTER, None, "it does not answer"),
        (MASTER, ResponseCode.SYSTEM_ERROR, "SYSTEM_ERROR"),
    ],
)
def test_unknown_deletions_are_an_error(master: Address | None, code: int | None, expected: str) -> None:
    asked, tables = Asked(), Adopted()
    sync = MetadataSync(cast(RemotingClient, asked), tables)
    sync.master, asked.code = master, code
    with pytest.raises(OSError, match=expected):
        asyncio.run(sync.correct_deletions())
    assert tables.got == []
    sync.master, asked.code = MASTER, ResponseCode.SUCCESS
    asyncio.run(sync.correct_deletions())
    assert len(tables.got) == 1


def test_a_failed_fetch_is_logged_once_until_a_success(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        play(None, None, None, ResponseCode.SUCCESS, None, None)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2


class _Committing(Adopted):
    """Tables with offsets that consumers committed to the slave."""

    def __init__(self, *groups: str) -> None:
        super().__init__()
        self.commits = [UpdateOffsetRequest(group, "T", 1, 7) for group in groups]
        self.sent: list[UpdateOffsetRequest] = []

    def newer_commits(self, table: Mapping[str, Mapping[int, int]]) -> list[UpdateOffsetRequest]:
        assert self.got[-1] is table, "the merge keeps the commits that are not sent yet"
        return self.commits

    def mark_sent(self, commit: UpdateOffsetRequest) -> None:
        self.sent.append(commit)


class _Recording(Asked):
    """A client that records the requests, and refuses the commits of the group `gone`."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Command] = []
        self.code = ResponseCode.SUCCESS

    async def invoke(self, address: Address, request: Command, timeout_s: float) -> Command:
        assert (address, timeout_s) == (MASTER, 3)
        self.requests.append(request)
        if request.fields.get("consumerGroup") == "gone":
            return request.answer(ResponseCode.SYSTEM_ERROR, remark="no such group")
        return await super().invoke(address, request, timeout_s)


def test_commits_to_the_slave_are_sent_to_the_master_once(caplog: pytest.LogCaptureFixture) -> None:
    client, tables = _Recording(), _Committing("one", "gone", "two")
    sync = MetadataSync(cast(RemotingClient, client), tables)
    sync.master = MASTER
    with caplog.at_level(logging.WARNING):
        asyncio.run(sync.sync())
    assert [request.code for request in client.requests] == [
        RequestCode.GET_ALL_TOPIC_CONFIG,
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
        RequestCode.GET_ALL_CONSUMER_OFFSET,
        *[RequestCode.UPDATE_CONSUMER_OFFSET] * 3,
        RequestCode.GET_ALL_DELAY_OFFSET,
    ]
    assert client.requests[3].fields == headers.write(UpdateOffsetRequest("one", "T", 1, 7))
    assert tables.sent == tables.commits, "what the master refuses is not sent again"
    assert caplog.messages == ["offset of group gone: no such group"]
    assert len(tables.got) == 4


def test_without_a_master_nothing_is_asked() -> None:
    client = _Recording()
    asyncio.run(MetadataSync(cast(RemotingClient, client), Adopted()).sync())
    assert client.requests == []


def test_a_different_failure_is_logged_and_the_same_one_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        play(None, None, ResponseCode.SYSTEM_ERROR, ResponseCode.SYSTEM_ERROR, None)
    texts = ["it does not answer", "GET_ALL_TOPIC_CONFIG: SYSTEM_ERROR: None", "it does not answer"]
    assert caplog.messages == [
        f"topics, groups or offsets of master {MASTER} cannot be fetched: {text}" for text in texts
    ]
