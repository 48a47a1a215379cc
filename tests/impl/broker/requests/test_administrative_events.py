"""The events of administrative requests, and the audit of a log with operators' resets.

Goal: the event log says what an operator changed and from where, and the audit reports no reset as a
regression or as a loss. Method: a broker, its clients and an administrator in a simulated world; an audit of
their log.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mqproof.impl.admin import brokers, groups, topics
from mqproof.impl.broker.requests.administrative_events import commit, recording, reset_at_broker
from mqproof.impl.client.consuming.group_requests import GroupRequests
from mqproof.impl.client.consuming.push_consumer import PushConsumer
from mqproof.impl.client.model import ReceivedMessage
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import (
    SubscriptionGroup,
    SubscriptionGroupList,
    TopicConfig,
    TopicConfigList,
)
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import (
    AccountRequest,
    CloneOffsetRequest,
    DeleteAccountRequest,
    DeleteGroupRequest,
    ResetOffsetRequest,
    SubjectRequest,
    TopicRequest,
    UpdateOffsetRequest,
    UpdateTopicRequest,
    UserRequest,
)
from mqproof.impl.runtime.simulated_loop import run_simulated
from mqproof.spark_audit.checks import CHECKS
from mqproof.spec.events import Event, Kind, as_row
from tests.impl.admin.test_with_broker import QUEUES, sent, with_topic
from tests.impl.broker.memory_store import Events
from tests.impl.world import World, play
from tests.spark_audit.conftest import embedded_audit


def recorded(world: World, kind: Kind) -> list[Event]:
    return [event for event in world.events if event.kind is kind and event.node == "broker-a"]


def actions(world: World) -> list[tuple[str | None, ...]]:
    """Return what the broker recorded of administrative requests since the last call."""
    found: list[tuple[str | None, ...]] = [
        (event.attrs["action"], event.topic, event.group) for event in recorded(world, Kind.ADMIN)
    ]
    world.events[:] = [event for event in world.events if event.kind is not Kind.ADMIN]
    return found


def test_each_administrative_request_is_recorded_with_its_subject_and_its_origin() -> None:
    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        [event] = recorded(world, Kind.ADMIN)
        assert event.topic == "T"
        assert event.attrs["address"].startswith("127.0.0.1:")
        assert "account" not in event.attrs, "without access control, the name of an account proves nothing"
        assert actions(world) == [("update_and_create_topic", "T", None)]
        masters = [world.broker_address]
        await groups.update_group(admin, masters, SubscriptionGroup(group_name="G"))
        await sent(world, 5)
        calls = GroupRequests(admin.session, "G")
        await calls.commit(QUEUES[0], 2)
        assert actions(world) == [("update_and_create_subscriptiongroup", None, "G")]
        await brokers.update_config(admin, masters, "brokerPermission", "4")
        [event] = recorded(world, Kind.ADMIN)
        assert event.attrs["settings"] == "brokerPermission"
        world.events.clear()
        await groups.delete_group(admin, masters, "G", offsets=True)
        await topics.delete_topic(admin, masters, "T", "DefaultCluster")
        assert ("delete_subscriptiongroup", None, "G") in actions(world)
        await admin.session.stop()

    play(scenario)


def test_a_refused_request_is_not_recorded() -> None:
    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        actions(world)
        with pytest.raises(Exception, match="cannot be deleted"):
            await topics.delete_topic(admin, [world.broker_address], "TBW102", "DefaultCluster")
        assert actions(world) == []
        await admin.session.stop()

    play(scenario)


def test_a_reset_without_members_is_recorded_with_the_offset_before() -> None:
    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        await sent(world, 5)
        for queue, offset in zip(QUEUES, (2, 0), strict=True):
            await GroupRequests(admin.session, "G").commit(queue, offset)
        actions(world)
        await groups.reset_offsets(admin, "G", "T", 0)
        newest = [event for event in recorded(world, Kind.OFFSET_COMMIT) if event.queue_id == 0][-1]
        assert (newest.queue_offset, newest.attrs) == (0, {"reset": "true", "previous": "2"})
        assert ("update_consumer_offset", "T", "G") in actions(world)
        await groups.reset_queue(
            admin, "G", "T", world.broker_address, 0, timestamp_ms=groups.END, offset=None
        )
        newest = [event for event in recorded(world, Kind.OFFSET_COMMIT) if event.queue_id == 0][-1]
        assert (newest.queue_offset, newest.attrs) == (3, {"reset": "true", "previous": "0"})
        await admin.session.stop()

    play(scenario)


@pytest.mark.parametrize("is_online", [False, True])
def test_the_audit_reports_no_reset_of_an_operator(tmp_path: Path, *, is_online: bool) -> None:
    """The group reads all messages again after a reset back, and leaves some out after a reset forward."""
    rows: list[dict[str, Any]] = []

    async def scenario(world: World) -> None:
        admin = await with_topic(world)
        received: Counter[str] = Counter()

        async def receive(messages: Sequence[ReceivedMessage]) -> None:
            received.update(message.body.decode() for message in messages)

        async def started(node: str) -> PushConsumer:
            consumer = PushConsumer(world.session, "H", receive, events=world.event_log(node))
            await consumer.subscribe("T")
            await consumer.start()
            return consumer

        async def reset(to: int) -> None:
            await groups.reset_offsets(admin, "H", "T", to)

        running = await started("first")
        await asyncio.sleep(30)
        await sent(world, 10)
        await asyncio.sleep(30)
        assert set(received.values()) == {1}
        if is_online:
            await reset(0)
        else:
            await running.stop()
            await reset(0)
            running = await started("second")
        await asyncio.sleep(60)
        assert set(received.values()) == {2}
        if not is_online:
            await running.stop()
            await sent(world, 10)
            await reset(groups.END)
            running = await started("third")
            await asyncio.sleep(30)
        await sent(world, 10)
        await asyncio.sleep(30)
        await running.stop()
        await admin.session.stop()
        rows.extend(as_row(event) for event in world.events)

    play(scenario)
    checks = {name: CHECKS[name] for name in ("DELIV-1", "DELIV-5")}
    done = embedded_audit(rows, tmp_path, checks=checks)
    found = {each.id: dict(each.counts) for each in done.results}
    assert {each.id: each.found for each in done.results} == {"DELIV-1": 0, "DELIV-5": 0}, found
    assert found["DELIV-5"]["offset_reset"] > 0
    assert ("offset_reset" in found["DELIV-1"]) is not is_online


@pytest.mark.parametrize(
    ("has_accounts", "fields", "account"),
    [
        (True, {"AccessKey": "operator"}, {"account": "operator"}),
        (True, {}, {}),
        (True, {"AccessKey": ""}, {}),
        (False, {"AccessKey": "operator"}, {}),
    ],
)
def test_an_event_names_the_account_that_signed_the_request(
    has_accounts: bool, fields: dict[str, str], account: dict[str, str]
) -> None:
    events = Events()
    services = SimpleNamespace(events=events, acl=object() if has_accounts else None)
    request = new_request(RequestCode.DELETE_TOPIC_IN_BROKER, {**fields, "topic": "T"})
    channel = SimpleNamespace(remote=("10.0.0.1", 1))
    handle = recording(request.code, lambda request, _: request.answer(0), cast("Any", services))
    run_simulated(cast("Any", handle)(request, channel))
    attrs = {"action": "delete_topic_in_broker", "address": str(channel.remote), **account}
    assert events.kept == [(Kind.ADMIN, {"topic": "T", "group": None, "attrs": attrs})]


def topic_list(*names: str) -> bytes:
    return java_json.write(TopicConfigList([TopicConfig(name) for name in names]))


def group_list(*names: str) -> bytes:
    return java_json.write(SubscriptionGroupList([SubscriptionGroup(group_name=name) for name in names]))


@pytest.mark.parametrize(
    ("code", "header", "body", "subjects"),
    [
        (RequestCode.UPDATE_AND_CREATE_TOPIC, UpdateTopicRequest("T", "D", 1, 1, 6), b"", [{"topic": "T"}]),
        (
            RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
            None,
            topic_list("T", "U"),
            [{"topic": "T"}, {"topic": "U"}],
        ),
        (RequestCode.DELETE_TOPIC_IN_BROKER, TopicRequest("T"), b"", [{"topic": "T"}]),
        (
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
            None,
            java_json.write(SubscriptionGroup(group_name="G"), standard=True),
            [{"group": "G"}],
        ),
        (
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
            None,
            group_list("G", "H"),
            [{"group": "G"}, {"group": "H"}],
        ),
        (RequestCode.DELETE_SUBSCRIPTIONGROUP, DeleteGroupRequest("G"), b"", [{"group": "G"}]),
        (
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
            ResetOffsetRequest("T", "G", 0, False),
            b"",
            [{"topic": "T", "group": "G"}],
        ),
        (
            RequestCode.CLONE_GROUP_OFFSET,
            CloneOffsetRequest("G", "H"),
            b"",
            [{"group": "H", "attrs": {"source": "G"}}],
        ),
        (
            RequestCode.CLONE_GROUP_OFFSET,
            CloneOffsetRequest("G", "H", "T"),
            b"",
            [{"topic": "T", "group": "H", "attrs": {"source": "G"}}],
        ),
        (
            RequestCode.UPDATE_AND_CREATE_ACL_CONFIG,
            AccountRequest("orders"),
            b"",
            [{"attrs": {"changed_account": "orders"}}],
        ),
        (
            RequestCode.DELETE_ACL_CONFIG,
            DeleteAccountRequest("orders"),
            b"",
            [{"attrs": {"changed_account": "orders"}}],
        ),
        (RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, None, b"", [{}]),
        *(
            (code, UserRequest("orders"), b"", [{"attrs": {"changed_account": "orders"}}])
            for code in (
                RequestCode.AUTH_CREATE_USER,
                RequestCode.AUTH_UPDATE_USER,
                RequestCode.AUTH_DELETE_USER,
            )
        ),
        *(
            (code, SubjectRequest("User:orders"), b"", [{"attrs": {"changed_account": "orders"}}])
            for code in (
                RequestCode.AUTH_CREATE_ACL,
                RequestCode.AUTH_UPDATE_ACL,
                RequestCode.AUTH_DELETE_ACL,
            )
        ),
        (
            RequestCode.UPDATE_BROKER_CONFIG,
            None,
            b"b = 1\nno setting\na=2=3",
            [{"attrs": {"settings": "a,b"}}],
        ),
    ],
)
def test_the_event_of_a_request_names_what_it_changed(
    code: RequestCode, header: headers.Header | None, body: bytes, subjects: list[dict[str, Any]]
) -> None:
    events = Events()
    services = SimpleNamespace(events=events, acl=None)
    request = new_request(code, headers.write(header) if header else {}, body)
    channel = SimpleNamespace(remote=("10.0.0.1", 1))
    handle = recording(code, lambda request, _: request.answer(0), cast("Any", services))
    run_simulated(cast("Any", handle)(request, channel))
    attrs = {"action": code.name.lower(), "address": str(channel.remote)}
    assert events.kept == [
        (
            Kind.ADMIN,
            {
                "topic": subject.get("topic"),
                "group": subject.get("group"),
                "attrs": attrs | subject.get("attrs", {}),
            },
        )
        for subject in subjects
    ]


@pytest.mark.parametrize(
    ("code", "answered", "has_log"),
    [
        (RequestCode.DELETE_TOPIC_IN_BROKER, 1, True),
        (RequestCode.DELETE_TOPIC_IN_BROKER, 0, False),
        (RequestCode.GET_BROKER_CONFIG, 0, True),
    ],
)
def test_a_refused_request_and_one_that_changes_nothing_have_no_event(
    code: RequestCode, answered: int, has_log: bool
) -> None:
    events = Events()
    services = SimpleNamespace(events=events if has_log else None, acl=None)
    request = new_request(code, {"topic": "T"})
    handle = recording(code, lambda request, _: request.answer(answered), cast("Any", services))
    answer: Any = cast("Any", handle)(request, None)
    answer = run_simulated(answer) if isinstance(answer, Coroutine) else answer
    assert (answer.code, events.kept) == (answered, [])


@pytest.mark.parametrize(
    ("known", "offset", "received", "is_member", "is_expected", "is_reset", "is_recorded"),
    [
        (None, 9, 0, False, False, False, False),
        (5, 5, 0, False, False, False, False),
        (5, 4, 0, False, False, True, True),
        (5, 6, 0, False, False, True, True),
        (5, 7, 7, False, False, False, False),
        (5, 8, 7, False, False, True, True),
        (5, 4, 0, True, False, False, False),
        (5, 8, 0, True, False, False, False),
        (5, 4, 0, True, True, True, False),
        (5, 8, 0, False, True, True, False),
    ],
)
def test_a_commit_that_sets_an_offset_back_or_beyond_what_was_received_is_a_reset(
    known: int | None,
    offset: int,
    received: int,
    is_member: bool,
    is_expected: bool,
    is_reset: bool,
    is_recorded: bool,
) -> None:
    events, channel, committed = Events(), SimpleNamespace(remote=("10.0.0.1", 1)), list[Any]()

    def explains(group: str, topic: str, queue_id: int, before: int, after: int) -> bool:
        assert (group, topic, queue_id, before, after) == ("G", "T", 3, known, offset)
        return is_expected

    def end(topic: str, group: str, queue_id: int) -> int:
        assert (topic, group, queue_id) == ("T", "G", 3)
        return received

    services = SimpleNamespace(
        events=events,
        acl=None,
        offsets=SimpleNamespace(query=lambda *_: known, commit=lambda *given: committed.append(given)),
        resets=SimpleNamespace(explains=explains),
        pull_progress=SimpleNamespace(end=end),
        clients=SimpleNamespace(consumer_channels=lambda _: [channel] if is_member else []),
    )
    header = UpdateOffsetRequest("G", "T", 3, offset)
    request = new_request(RequestCode.UPDATE_CONSUMER_OFFSET, headers.write(header))
    commit(cast("Any", services), header, request, cast("Any", channel))
    assert committed == [("G", "T", 3, offset)]
    place = {"group": "G", "topic": "T", "queue_id": 3, "queue_offset": offset}
    attrs = {"reset": "true", "previous": str(known)} if is_reset else None
    assert events.kept[0] == (Kind.OFFSET_COMMIT, {**place, "attrs": attrs})
    action = {"action": "update_consumer_offset", "address": str(channel.remote)}
    admin = (Kind.ADMIN, {"topic": "T", "group": "G", "attrs": action})
    assert events.kept[1:] == ([admin] if is_recorded else [])


@pytest.mark.parametrize("has_log", [True, False])
def test_only_the_offsets_that_a_reset_changed_are_recorded(has_log: bool) -> None:
    events = Events()
    offsets = {("G", "T"): {0: 5, 1: 7, 2: 9}}
    services = SimpleNamespace(
        events=events if has_log else None,
        offsets=SimpleNamespace(of_group=lambda group, topic: offsets[group, topic]),
    )
    reset_at_broker(cast("Any", services), "G", "T", {0: 4, 1: 7})
    place = {"group": "G", "topic": "T"}
    recorded = [
        {**place, "queue_id": 0, "queue_offset": 5, "attrs": {"reset": "true", "previous": "4"}},
        {**place, "queue_id": 2, "queue_offset": 9, "attrs": {"reset": "true"}},
    ]
    assert events.kept == ([(Kind.OFFSET_COMMIT, fields) for fields in recorded] if has_log else [])
