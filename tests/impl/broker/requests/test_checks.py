"""Tests the checks that request processors share: each refuses with its code, and otherwise returns.

Sources: docs/reference/protocol/sending.md, "Send requests"; docs/reference/protocol/pulling.md, "Pull
requests"; docs/reference/protocol/retries-and-delays.md, "Delayed messages".
"""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from mqproof.impl.broker.requests import checks
from mqproof.impl.remoting.bodies import SubscriptionGroup, TopicConfig
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.message import DELAY, Message
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.delay import SCHEDULE_TOPIC

CHANNEL: Any = object()


class Groups:
    """The groups of a broker; it records for which channel a group was created."""

    def __init__(self, *known: SubscriptionGroup) -> None:
        self.known = {group.group_name: group for group in known}
        self.made: list[tuple[str, object]] = []

    def get(self, name: str) -> SubscriptionGroup | None:
        return self.known.get(name)

    def find_or_make(self, name: str, *, auto_create: bool, by: object) -> SubscriptionGroup | None:
        if not auto_create:
            return None
        self.made.append((name, by))
        return SubscriptionGroup(group_name=name)


def services(**more: object) -> Any:
    """Return the services with the topic T: 4 read queues and 2 write queues."""
    topics = {
        "T": TopicConfig("T", perm=6, read_queue_nums=4, write_queue_nums=2),
        "write-only": TopicConfig("write-only", perm=2),
    }
    return SimpleNamespace(**{"topics": topics, "is_slave": False, **more})


def refusal(check: Any, *arguments: object) -> tuple[int, str] | None:
    """Return the code and the remark of a refusal; None if the check passes."""
    try:
        check(*arguments)
    except RefusedError as error:
        return error.code, error.remark
    return None


@pytest.mark.parametrize(
    ("name", "auto_create", "expected"),
    [
        ("known", False, None),
        ("new", True, None),
        ("new", False, (ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "group new does not exist")),
        ("", True, (ResponseCode.SYSTEM_ERROR, "'' cannot be a consumer group's name")),
        ("a b", True, (ResponseCode.SYSTEM_ERROR, "'a b' cannot be a consumer group's name")),
    ],
)
def test_an_unknown_group_is_created_for_its_channel_or_refused(
    name: str, auto_create: bool, expected: tuple[int, str] | None
) -> None:
    groups = Groups(SubscriptionGroup(group_name="known"))
    given = services(groups=groups, config=SimpleNamespace(auto_create_groups=auto_create))
    assert refusal(checks.require_group, given, name, CHANNEL) == expected
    assert groups.made == ([("new", CHANNEL)] if name == "new" and auto_create else [])


def test_a_group_that_may_not_consume_is_refused() -> None:
    silent = SubscriptionGroup(group_name="silent", consume_enable=False)
    given = services(groups=Groups(silent, SubscriptionGroup(group_name="G")))
    assert checks.require_consuming_group(given, "G", CHANNEL).group_name == "G"
    refused = refusal(checks.require_consuming_group, given, "silent", CHANNEL)
    assert refused == (ResponseCode.NO_PERMISSION, "group silent may not consume")


def test_a_topic_that_does_not_exist_is_refused() -> None:
    assert checks.require_topic(services(), "T").topic_name == "T"
    refused = refusal(checks.require_topic, services(), "unknown")
    assert refused == (ResponseCode.TOPIC_NOT_EXIST, "topic unknown does not exist")


@pytest.mark.parametrize(
    ("topic", "queue_id", "expected"),
    [
        ("T", 0, None),
        ("T", 3, None),
        ("T", -1, (ResponseCode.SYSTEM_ERROR, "queue -1 of topic T, which has 4 queues")),
        ("T", 4, (ResponseCode.SYSTEM_ERROR, "queue 4 of topic T, which has 4 queues")),
        ("unknown", 0, (ResponseCode.TOPIC_NOT_EXIST, "topic unknown does not exist")),
        ("write-only", 0, (ResponseCode.NO_PERMISSION, "topic write-only has no read permission")),
    ],
)
def test_a_queue_that_cannot_be_read_is_refused(
    topic: str, queue_id: int, expected: tuple[int, str] | None
) -> None:
    assert refusal(checks.require_readable_queue, services(), topic, queue_id) == expected


@pytest.mark.parametrize(("permission", "refused"), [(6, []), (4, ["write"]), (2, ["read"]), (1, None)])
def test_a_broker_refuses_what_its_permission_excludes(permission: int, refused: list[str] | None) -> None:
    given = services(config=SimpleNamespace(permission=permission))
    found = {
        "read": refusal(checks.require_readable_broker, given),
        "write": refusal(checks.require_writable_broker, given),
    }
    for kind, answer in found.items():
        is_refused = refused is None or kind in refused
        remark = f"the broker has no {kind} permission"
        assert answer == ((ResponseCode.NO_PERMISSION, remark) if is_refused else None)


@pytest.mark.parametrize(
    ("is_slave", "has_all", "master", "sole_master"),
    [
        (False, True, None, None),
        (False, False, None, "no quorum has confirmed lately that this broker is the leader"),
        (True, True, "ask the master", "ask the master"),
        (True, False, "ask the master", "ask the master"),
    ],
)
def test_a_slave_and_an_unconfirmed_leader_refuse(
    is_slave: bool, has_all: bool, master: str | None, sole_master: str | None
) -> None:
    given = services(is_slave=is_slave, store=SimpleNamespace(has_all=has_all, refusal="ask the master"))
    for check, remark in ((checks.require_master, master), (checks.require_sole_master, sole_master)):
        code = ResponseCode.SERVICE_NOT_AVAILABLE
        assert refusal(check, given) == (None if remark is None else (code, remark))


# Delay levels.

LEVELS = SimpleNamespace(store=SimpleNamespace(delay_levels_ms=(1000, 5000, 10_000)))


def delayed(level: str | None) -> Message:
    return Message("T", b"x", {} if level is None else {DELAY: level})


def scheduled(given: Any, level: str | None) -> tuple[str, int]:
    message = checks.scheduled_or_refused(given, delayed(level))
    return message.topic, message.queue_id


async def answers(given: Any) -> list[tuple[str, int]]:
    return [scheduled(given, level) for level in (None, "0", "1", "3", "4")]


def test_a_message_goes_to_the_queue_of_its_level_and_at_most_to_the_last_one() -> None:
    given = services(config=LEVELS, level_logged_s=float("-inf"))
    assert run_simulated(answers(given), SimulatedLoop()) == [
        ("T", 0), ("T", 0), (SCHEDULE_TOPIC, 0), (SCHEDULE_TOPIC, 2), (SCHEDULE_TOPIC, 2),
    ]  # fmt: skip


def test_a_level_that_is_no_number_is_refused() -> None:
    code, remark = refusal(checks.scheduled_or_refused, services(config=LEVELS), delayed("x")) or (0, "")
    assert (code, remark) == (ResponseCode.MESSAGE_ILLEGAL, "DELAY is 'x', the number of a level expected")


def test_a_level_above_the_last_one_is_logged_at_most_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = services(config=LEVELS, level_logged_s=float("-inf"))

    async def main() -> list[int]:
        counts = []
        for level, pause_s in (("3", 0), (None, 0), ("9", 59.5), ("9", 0.5), ("9", 59.5), ("9", 0)):
            scheduled(given, level)
            counts.append(len(caplog.records))
            await asyncio.sleep(pause_s)
        return counts

    with caplog.at_level(logging.WARNING):
        assert run_simulated(main(), SimulatedLoop()) == [0, 0, 1, 1, 2, 2]
    line = "a message to T has delay level 9, which counts as 3, the last one"
    assert [one.getMessage() for one in caplog.records] == [line, line]
