"""Tests recalls: which handles are accepted, and the answers.

Source: docs/reference/protocol/timers.md, "Recalls".
"""

from types import SimpleNamespace
from typing import Any

import pytest

from mqproof.impl.broker.processors.recalls import recall_message
from mqproof.impl.remoting import headers
from mqproof.impl.remoting.bodies import TopicConfig
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import RecallMessageRequest, RecallMessageResponse
from mqproof.impl.remoting.recall_handle import RecallHandle
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.simulated_loop import run_simulated
from mqproof.impl.store.results import PutResult, PutStatus

NOW_MS = 5000
HANDLE = RecallHandle("T", "broker-a", NOW_MS + 1, "key")
CHANNEL: Any = object()


class Timers:
    """Records the recalls, and answers with a status."""

    def __init__(self, status: PutStatus) -> None:
        self.status = status
        self.recalled: list[tuple[RecallHandle, str | None]] = []

    async def recall(self, handle: RecallHandle, group: str | None) -> PutResult:
        self.recalled.append((handle, group))
        return PutResult(self.status, reason="" if self.status is PutStatus.PUT_OK else "a reason")


def services(status: PutStatus = PutStatus.PUT_OK, **more: object) -> Any:
    config = {"permission": 6, "recalls": True, "name": "broker-a"}
    return SimpleNamespace(
        config=SimpleNamespace(**{name: more.get(name, value) for name, value in config.items()}),
        is_slave=more.get("is_slave", False),
        topics={"T": TopicConfig("T"), "U": TopicConfig("U")},
        store=SimpleNamespace(now_ms=lambda: NOW_MS, refusal="this broker is a slave"),
        timers=Timers(status),
    )


def recall(given: Any, handle: str = HANDLE.encode(), topic: str = "T") -> Command:
    fields = headers.write(RecallMessageRequest(topic, handle, "PG"))
    answer = run_simulated(recall_message(given, new_request(RequestCode.RECALL_MESSAGE, fields), CHANNEL))
    assert answer is not None
    return answer


def test_a_recall_names_the_message_in_its_answer() -> None:
    given = services()
    answer = recall(given)
    assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, None)
    assert headers.read(RecallMessageResponse, answer.fields).msg_id == "key"
    assert given.timers.recalled == [(HANDLE, "PG")]


@pytest.mark.parametrize(
    ("status", "code", "remark"),
    [
        (
            PutStatus.FLUSH_DISK_TIMEOUT,
            ResponseCode.SYSTEM_ERROR,
            "the recall is stored, but not confirmed: FLUSH_DISK_TIMEOUT a reason",
        ),
        (
            PutStatus.SERVICE_NOT_AVAILABLE,
            ResponseCode.SERVICE_NOT_AVAILABLE,
            "the recall is not stored: SERVICE_NOT_AVAILABLE a reason",
        ),
        (
            PutStatus.UNKNOWN_ERROR,
            ResponseCode.SYSTEM_ERROR,
            "the recall is not stored: UNKNOWN_ERROR a reason",
        ),
    ],
)
def test_an_unconfirmed_recall_is_an_error_that_says_whether_it_is_stored(
    status: PutStatus, code: ResponseCode, remark: str
) -> None:
    answer = recall(services(status))
    assert (answer.code, answer.remark) == (code, remark)


@pytest.mark.parametrize(
    ("handle", "topic", "code", "remark"),
    [
        ("no handle", "T", ResponseCode.ILLEGAL_OPERATION, "the recall handle is invalid"),
        (HANDLE.encode(), "U", ResponseCode.ILLEGAL_OPERATION, "recall failed, topic not match"),
        (HANDLE.encode(), "V", ResponseCode.TOPIC_NOT_EXIST, "topic V does not exist"),
        (
            HANDLE._replace(broker="broker-b").encode(),
            "T",
            ResponseCode.ILLEGAL_OPERATION,
            "recall failed, broker service not available",
        ),
        (
            HANDLE._replace(due_ms=NOW_MS).encode(),
            "T",
            ResponseCode.ILLEGAL_OPERATION,
            "recall failed, timestamp invalid",
        ),
    ],
)
def test_a_handle_that_names_no_waiting_message_here_is_refused(
    handle: str, topic: str, code: ResponseCode, remark: str
) -> None:
    given = services()
    with pytest.raises(RefusedError) as refused:
        recall(given, handle, topic)
    assert (refused.value.code, refused.value.remark, given.timers.recalled) == (code, remark, [])


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"is_slave": True}, ResponseCode.SERVICE_NOT_AVAILABLE),
        ({"permission": 4}, ResponseCode.NO_PERMISSION),
        ({"recalls": False}, ResponseCode.NO_PERMISSION),
    ],
)
def test_a_broker_that_stores_no_recalls_refuses_them(changes: dict[str, Any], code: ResponseCode) -> None:
    given = services(**changes)
    with pytest.raises(RefusedError) as refused:
        recall(given)
    assert (refused.value.code, given.timers.recalled) == (code, [])
