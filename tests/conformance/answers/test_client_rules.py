"""Tests the rules for the requests of our clients: right ones are accepted, each wrong one is reported."""

import json
import zlib
from typing import Any, Final

import pytest

from mqproof.conformance.answers.client_rules import Client
from mqproof.conformance.answers.request_and_answer import (
    COMMIT,
    HEART_BEAT,
    LIST_MEMBERS,
    PULL,
    QUERY_OFFSET,
    SEND_V2,
    UNREGISTER,
    Exchange,
)
from mqproof.conformance.wire.frames import Frame

_SERVER: Final = "10.0.0.3:10911"
_PULL: Final = {
    "consumerGroup": "g", "topic": "T", "queueId": "0", "queueOffset": "0", "maxMsgNums": "32",
    "sysFlag": "6", "commitOffset": "0", "suspendTimeoutMillis": "15000", "subscription": "A",
}  # fmt: skip
_SEND: Final = {
    "b": "T", "c": "TBW102", "e": "0", "f": "0", "g": "900", "j": "0", "k": "false", "m": "false",
    "i": f"UNIQ_KEY\x01{'0A' * 16}",
}  # fmt: skip


def _beat(**changed: Any) -> bytes:
    subscriptions = [
        {"topic": "T", "subString": "A", "tagsSet": ["A"], "codeSet": [65]},
        {"topic": "%RETRY%g", "subString": "*", "tagsSet": [], "codeSet": []},
    ]
    consumer = {
        "groupName": "g", "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
        "subscriptionDataSet": subscriptions, **changed,
    }  # fmt: skip
    return json.dumps({"clientID": "host@1", "consumerDataSet": [consumer]}).encode()


class _Member:
    """A member of the group that has sent its heartbeat."""

    def __init__(self) -> None:
        self.client = Client()
        self.wrong: list[str] = []
        self.now_ms = 1000
        self.ask(HEART_BEAT, body=_beat())
        assert self.wrong == []

    def ask(self, code: int, fields: dict[str, str] | None = None, *, body: bytes = b"") -> None:
        request = Frame(code, fields=fields or {}, body=body)
        for each in self.client.asked(request, _SERVER, self.now_ms):
            self.wrong.append(f"{each.text} ({each.rule})")
        self._last = request, self.now_ms

    def hear(self, code: int, fields: dict[str, str] | None = None) -> None:
        request, asked_ms = self._last
        answer = Frame(code, fields=fields or {})
        self.client.answered(Exchange(request, answer, "10.0.0.4:4", _SERVER, asked_ms, self.now_ms))

    def pull(self, answer: int = 0, following: int = 2, **changed: str) -> None:
        self.ask(PULL, {**_PULL, **changed})
        self.hear(answer, {"nextBeginOffset": str(following)})

    def commit(self, offset: int, **more: str) -> None:
        fields = {"consumerGroup": "g", "topic": "T", "queueId": "0", "commitOffset": str(offset), **more}
        self.ask(COMMIT, fields)


def test_a_member_that_follows_the_rules_is_accepted() -> None:
    member = _Member()
    member.pull()
    member.commit(2, onlyForward="true")
    member.pull(following=3, queueOffset="2", sysFlag="7", commitOffset="2")
    member.client.moved()
    member.pull(following=1)
    member.commit(0)
    member.ask(QUERY_OFFSET, {"topic": "T", "queueId": "0"})
    member.hear(0, {"offset": "9"})
    member.pull(answer=21, following=4, queueOffset="9")
    member.pull(answer=2, queueOffset="4")
    member.now_ms += 1000
    member.pull(answer=215, queueOffset="4")
    member.pull(queueOffset="4")
    member.ask(UNREGISTER, {"clientID": "host@1", "consumerGroup": "g"})
    assert member.wrong == []


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"maxMsgNums": "31"}, "maxMsgNums is 31"),
        ({"suspendTimeoutMillis": "1"}, "suspendTimeoutMillis is 1"),
        ({"sysFlag": "2"}, "flags to hold, with a subscription is 2"),
        ({"subscription": "*"}, "subscription '*', that of the heartbeat is 'A'"),
        ({"queueOffset": "1"}, "a pull from 1, the answer before says 2"),
        ({"queueOffset": "2", "sysFlag": "7", "commitOffset": "3"}, "a commit of 3"),
    ],
)
def test_a_wrong_pull_is_reported(changed: dict[str, str], what: str) -> None:
    member = _Member()
    member.pull()
    member.ask(PULL, {**_PULL, "queueOffset": "2", **changed})
    assert what in member.wrong[0]
    assert "docs/reference/protocol/" in member.wrong[0]


def test_pulls_at_a_wrong_time_are_reported() -> None:
    member = _Member()
    member.ask(PULL, _PULL)
    member.ask(PULL, _PULL)
    member.hear(2)
    member.now_ms += 999
    member.pull()
    member.now_ms += 30_001
    member.pull(queueOffset="2")
    member.ask(UNREGISTER, {"clientID": "other", "consumerGroup": "g"})
    member.pull()
    member.commit(0, onlyForward="true")
    assert [each.partition(" (")[0] for each in member.wrong] == [
        "a second pull before the answer to the first one",
        "a pull 999 ms after an error, expected 1000",
        "offset 2 is not committed after 30001 ms",
        "'other' leaves, the client id is 'host@1'",
        "a pull after the client has left g",
        "a commit after the client has left g",
    ]


@pytest.mark.parametrize(("late_ms", "count"), [(24_999, 1), (25_000, 0)])
def test_an_answer_that_may_have_been_given_up_does_not_move_a_pull(late_ms: int, count: int) -> None:
    member = _Member()
    member.ask(PULL, _PULL)
    member.now_ms += late_ms
    member.hear(0, {"nextBeginOffset": "2"})
    member.ask(PULL, _PULL)
    assert [each.startswith("a pull from 0, the answer before says 2") for each in member.wrong] == [
        True
    ] * count


def test_wrong_commits_are_reported() -> None:
    member = _Member()
    member.pull()
    member.commit(3, onlyForward="true")
    member.commit(2)
    member.commit(-1, onlyForward="true")
    assert [each.partition(" (")[0] for each in member.wrong] == [
        "a commit of 3, the client received messages up to 2",
        "a commit without onlyForward and without a reset",
        "a commit of -1, the client received messages up to 2",
    ]


def test_wrong_heartbeats_and_late_ones_are_reported() -> None:
    member = _Member()
    member.ask(LIST_MEMBERS, {"consumerGroup": "g"})
    member.now_ms += 120_000
    member.ask(LIST_MEMBERS, {"consumerGroup": "g"})
    retries = {"topic": "%RETRY%g", "subString": "*", "tagsSet": ["A"], "codeSet": [1]}
    member.ask(HEART_BEAT, body=_beat(subscriptionDataSet=[retries]))
    member.ask(HEART_BEAT, body=_beat(subscriptionDataSet=[]).replace(b"host@1", b"host"))
    assert [each.partition(" (")[0] for each in member.wrong] == [
        "the share of g was last computed 120000 ms before",
        "the last heartbeat was 120000 ms before",
        "codes [1] of the tags ['A']",
        "client id 'host', 'host@1' before",
        "g does not subscribe to its retry topic",
    ]


@pytest.mark.parametrize(
    ("changed", "body", "what"),
    [
        ({}, b"body", ""),
        ({"f": "1"}, zlib.compress(bytes(4096)), ""),
        ({"i": "UNIQ_KEY\x01x"}, b"body", "unique key 'x'"),
        ({"g": "1001"}, b"body", "born at 1001, sent at 1000"),
        ({"c": "X"}, b"body", "defaultTopic 'X'"),
        ({}, bytes(4096), "a body of 4096 bytes is not compressed"),
        ({"f": "1"}, b"body", "no zlib stream"),
        ({"f": "1"}, zlib.compress(bytes(4095)), "a body of 4095 bytes is compressed"),
    ],
)
def test_a_wrong_send_is_reported(changed: dict[str, str], body: bytes, what: str) -> None:
    member = _Member()
    member.ask(SEND_V2, {**_SEND, **changed}, body=body)
    assert bool(member.wrong) == bool(what)
    assert what in " ".join(member.wrong)


def test_attempts_after_the_last_one_are_reported() -> None:
    late, often, stored = _Member(), _Member(), _Member()
    late.ask(SEND_V2, _SEND)
    late.now_ms += 3001
    late.ask(SEND_V2, _SEND)
    for _ in range(4):
        often.ask(SEND_V2, _SEND)
    stored.ask(SEND_V2, _SEND)
    stored.hear(10)
    stored.ask(SEND_V2, _SEND)
    assert "attempt 2, 3001 ms after" in late.wrong[0]
    assert "attempt 4" in often.wrong[0]
    assert "after one that stored it" in stored.wrong[0]
