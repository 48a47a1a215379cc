"""Tests the limits of topics and groups that administrators create: the last allowed and the first refused.

Source: docs/reference/protocol/administration.md, "Administration of a broker".
"""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from mqproof.impl.broker.processors import group_admin, topic_admin
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import SubscriptionGroup, TopicConfig
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import new_request
from mqproof.impl.remoting.headers import DeleteGroupRequest, TopicRequest, UpdateTopicRequest
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.simulated_loop import run_simulated

CHANNEL: Any = object()
TOPIC = UpdateTopicRequest("New", "TBW102", 3, 2, 6)


class Table:
    """A table of topics or groups, which records what is put and deleted, and for which channel."""

    def __init__(self, **known: Any) -> None:
        self.known = known
        self.put: list[tuple[Any, object]] = []
        self.deleted: list[object] = []

    def get(self, name: str) -> Any:
        return self.known.get(name)

    async def put_all(self, changed: list[Any], channel: object) -> None:
        self.put.extend((one, channel) for one in changed)

    async def delete(self, names: object) -> None:
        self.deleted.append(names)


def services(**more: object) -> Any:
    config = SimpleNamespace(topic_queues_max=8, name="broker-a", cluster="C")
    return SimpleNamespace(**{"config": config, "topics": Table(), "groups": Table(), **more})


def update(given: Any, **changes: Any) -> None:
    fields = headers.write(msgspec.structs.replace(TOPIC, **changes))
    request = new_request(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
    answer = run_simulated(topic_admin.update_topic(given, request, CHANNEL))
    assert answer is not None
    assert answer.code == ResponseCode.SUCCESS


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"perm": 0}, None),
        ({"perm": 7}, None),
        ({"perm": -1}, "permissions -1, 0 to 7 expected"),
        ({"perm": 8}, "permissions 8, 0 to 7 expected"),
        ({"read_queue_nums": 1}, None),
        ({"read_queue_nums": 8}, None),
        ({"read_queue_nums": 0}, "0 read and 2 write queues, 1 to 8 and 0 to 8 expected"),
        ({"read_queue_nums": 9}, "9 read and 2 write queues, 1 to 8 and 0 to 8 expected"),
        ({"write_queue_nums": 0}, None),
        ({"write_queue_nums": 8}, None),
        ({"write_queue_nums": -1}, "3 read and -1 write queues, 1 to 8 and 0 to 8 expected"),
        ({"write_queue_nums": 9}, "3 read and 9 write queues, 1 to 8 and 0 to 8 expected"),
        ({"topic_filter_type": "MULTI_TAG"}, None),
        ({"topic_filter_type": "TAGS"}, "filter type 'TAGS', SINGLE_TAG or MULTI_TAG expected"),
        ({"topic": "broker-a"}, "the topic broker-a is a system topic"),
        ({"topic": "C"}, "the topic C is a system topic"),
        ({"topic": "C_REPLY_TOPIC"}, "the topic C_REPLY_TOPIC is a system topic"),
        ({"topic": "broker-a_REPLY_TOPIC"}, None),
    ],
)
def test_a_topic_is_created_within_the_limits(changes: dict[str, Any], remark: str | None) -> None:
    given = services()
    if remark is None:
        update(given, **changes)
        [(made, channel)] = given.topics.put
        assert {name: getattr(made, name) for name in changes if name != "topic"} == {
            name: value for name, value in changes.items() if name != "topic"
        }
        assert (made.topic_name, made.topic_sys_flag) == (changes.get("topic", "New"), 0)
        assert channel is CHANNEL
    else:
        with pytest.raises(RefusedError) as refused:
            update(given, **changes)
        assert (refused.value.code, refused.value.remark) == (ResponseCode.SYSTEM_ERROR, remark)
        assert given.topics.put == []


def test_a_topic_that_has_the_requested_settings_is_not_written() -> None:
    given = services(topics=Table(New=TopicConfig("New", False, 6, 3, "SINGLE_TAG", 0, 2)))
    update(given)
    assert given.topics.put == []


@pytest.mark.parametrize("topic", ["", "C", "broker-a"])
def test_a_topic_that_cannot_be_deleted_is_named(topic: str) -> None:
    given = services()
    request = new_request(RequestCode.DELETE_TOPIC_IN_BROKER, headers.write(TopicRequest(topic)))
    with pytest.raises(RefusedError) as refused:
        run_simulated(topic_admin.delete_topic(given, request, CHANNEL))
    assert refused.value.code == ResponseCode.SYSTEM_ERROR
    assert refused.value.remark == f"topic {topic!r} cannot be deleted"
    assert given.topics.deleted == []


def test_a_topic_is_deleted_with_its_queues_and_offsets() -> None:
    gone: list[tuple[str, str]] = []
    store = SimpleNamespace(delete_topic=lambda name: gone.append(("queues", name)))
    offsets = SimpleNamespace(remove_topic=lambda name: gone.append(("offsets", name)))
    given = services(store=store, offsets=offsets)
    request = new_request(RequestCode.DELETE_TOPIC_IN_BROKER, headers.write(TopicRequest("T")))
    run_simulated(topic_admin.delete_topic(given, request, CHANNEL))
    assert (given.topics.deleted, gone) == ([["T"]], [("queues", "T"), ("offsets", "T")])


# Groups.


@pytest.mark.parametrize(
    ("name", "queues", "remark"),
    [
        ("G", 0, None),
        ("G", 8, None),
        ("G", -1, "-1 retry queues, 0 to 8 expected"),
        ("G", 9, "9 retry queues, 0 to 8 expected"),
        ("", 1, "'' cannot be a consumer group's name"),
        ("a b", 1, "'a b' cannot be a consumer group's name"),
    ],
)
def test_a_group_is_created_within_the_limits(name: str, queues: int, remark: str | None) -> None:
    given = services()
    group = SubscriptionGroup(group_name=name, retry_queue_nums=queues)
    body = java_json.write(group, standard=True)
    request = new_request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)
    if remark is None:
        run_simulated(group_admin.update_group(given, request, CHANNEL))
        assert given.groups.put == [(group, CHANNEL)]
    else:
        with pytest.raises(RefusedError) as refused:
            run_simulated(group_admin.update_group(given, request, CHANNEL))
        assert (refused.value.code, refused.value.remark) == (ResponseCode.SYSTEM_ERROR, remark)
        assert given.groups.put == []


@pytest.mark.parametrize(("asked", "removed"), [({}, []), ({"remove_offset": True}, ["G"])])
def test_the_offsets_of_a_deleted_group_are_removed_on_request(
    asked: dict[str, bool], removed: list[str]
) -> None:
    gone: list[str] = []
    given = services(offsets=SimpleNamespace(remove_group=gone.append))
    fields = headers.write(DeleteGroupRequest("G", **asked))
    request = new_request(RequestCode.DELETE_SUBSCRIPTIONGROUP, fields)
    run_simulated(group_admin.delete_group(given, request, CHANNEL))
    assert (given.groups.deleted, gone) == (["G"], removed)
