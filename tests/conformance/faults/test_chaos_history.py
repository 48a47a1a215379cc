"""The history of a capture is what the clients did and saw, so that the rules can judge it."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqproof.conformance.faults.chaos_history import history_of
from mqproof.conformance.history.judge import judge
from mqproof.conformance.history.lines import (
    Assign,
    Commit,
    Fault,
    Line,
    Poll,
    PollValue,
    Query,
    Send,
    SendValue,
    Setup,
    Type,
)
from mqproof.impl.chaos.capture import CaptureError, CaptureWriter, NodeChange, Opened, Recorded
from mqproof.impl.chaos.frame_head import frame_of
from mqproof.impl.remoting import headers, java_json
from mqproof.impl.remoting.bodies import ConsumerData, Heartbeat, Subscription
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command, new_request
from mqproof.impl.remoting.headers import PullRequest, SendRequest, UpdateOffsetRequest
from mqproof.impl.remoting.message import UNIQUE_KEY, Message, encode_properties
from mqproof.impl.store.files import record
from mqproof.report.model import Verdict

QUEUE = "T/b/0"


class Written:
    """A capture that a test writes, with one client on connection 1 unless another is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        times = count(10_000_000_000_000, 1000)
        self.writer = CaptureWriter(path.open("wb"), lambda: next(times))
        self.open(1)

    def open(self, connection: int, broker_id: int = 0) -> None:
        self.writer.write_object(Recorded.OPENED, connection, Opened("b", broker_id, "127.0.0.1:5"))

    def close(self, connection: int) -> None:
        self.writer.write(Recorded.CLOSED, connection, b"")

    def ask(
        self,
        code: int,
        header: headers.Header | None,
        body: bytes = b"",
        *,
        by: int = 1,
        oneway: bool = False,
    ) -> Command:
        fields = headers.write(header) if header is not None else {}
        request = new_request(code, fields, body, oneway=oneway)
        self.writer.write(Recorded.TO_SERVER, by, frame_of(request))
        return request

    def answer(
        self, request: Command, fields: dict[str, Any], body: bytes = b"", *, code: int = 0, by: int = 1
    ) -> None:
        texts = {name: str(value) for name, value in fields.items()}
        self.writer.write(Recorded.TO_CLIENT, by, frame_of(request.answer(code, texts, body)))

    def send(self, key: str, *, by: int = 1, flags: int = 0, topic: str = "T", **properties: str) -> Command:
        text = encode_properties({UNIQUE_KEY: key, **properties})
        header = SendRequest("P", topic, "TBW102", 4, 0, flags, 1, 0, text)
        return self.ask(RequestCode.SEND_MESSAGE, header, key.encode(), by=by)

    def stored(self, request: Command, offset: int, *, code: int = 0, by: int = 1) -> None:
        fields = {"msgId": f"id{offset}", "queueId": 0, "queueOffset": offset}
        self.answer(request, fields, code=code, by=by)

    def poll(self, offset: int, *, by: int = 1, expression: tuple[str, str] = ("*", "TAG")) -> Command:
        header = PullRequest("G", "T", 0, offset, 32, 4, 0, 0, 0, *expression)
        return self.ask(RequestCode.PULL_MESSAGE, header, by=by)

    def found(self, request: Command, following: int, *messages: tuple[int, str], by: int = 1) -> None:
        fields = {"suggestWhichBrokerId": 0, "nextBeginOffset": following, "minOffset": 0, "maxOffset": 9}
        self.answer(request, fields, b"".join(_record(*each) for each in messages), by=by)

    def lines(self, kind: type | None = None) -> list[Any]:
        self.writer.close()
        found: list[Line] = list(history_of(self.path))
        assert [line.index for line in found] == list(range(len(found)))
        return [line for line in found if kind is None or type(line) is kind]


def _record(offset: int, key: str, stored_ms: int = 20_000_000, tag: str = "") -> bytes:
    properties = {UNIQUE_KEY: key, **({"TAGS": tag} if tag else {})}
    data = record.encode(Message("T", key.encode(), properties))
    record.place(data, offset, offset * 1000, stored_ms)
    return bytes(data)


@pytest.fixture
def capture(tmp_path: Path) -> Written:
    return Written(tmp_path / "c")


def test_sends_and_polls_are_operations_with_their_results(capture: Written) -> None:
    capture.stored(capture.send("m1"), 0)
    capture.found(capture.poll(0), 1, (0, "m1"))
    setup, invoke, sent, *_, poll, polled = capture.lines()
    assert isinstance(setup, Setup)
    assert (invoke.type, invoke.value.topic, invoke.value.messages[0].id) == (Type.INVOKE, "T", "m1")
    assert (sent.type, sent.value.status, sent.value.queue, sent.value.offset) == (
        *(Type.OK, "SEND_OK", QUEUE, 0),
    )  # fmt: skip
    assert (poll.value.group, poll.value.queue, poll.value.offset, poll.value.seek) == ("G", QUEUE, 0, True)
    assert [(each.id, each.offset, each.body) for each in polled.value.messages] == [
        ("m1", 0, sent and invoke.value.messages[0].body)
    ]
    assert (polled.value.next, polled.value.min, polled.value.max) == (1, 0, 9)


def test_a_member_that_continues_does_not_seek_and_owns_the_queue_once(capture: Written) -> None:
    capture.found(capture.poll(3), 5)
    capture.found(capture.poll(5), 5)
    capture.found(capture.poll(4), 5)
    history = capture.lines()
    assert [line.value.seek for line in history if type(line) is Poll and line.type is Type.INVOKE] == [
        *(True, False, True)
    ]
    assert len([line for line in history if type(line) is Assign]) == 2


def test_the_answer_to_an_abandoned_poll_does_not_count(capture: Written) -> None:
    first, second = capture.poll(0), capture.poll(0)
    capture.found(first, 1, (0, "m1"))
    capture.found(second, 1, (0, "m1"))
    ends = [line for line in capture.lines(Poll) if line.type is not Type.INVOKE]
    assert [line.type for line in ends] == [Type.INFO, Type.OK]
    assert ends[0].value == PollValue()


def test_a_send_whose_connection_closes_is_open_and_its_retry_is_another_attempt(capture: Written) -> None:
    capture.send("m1")
    capture.close(1)
    capture.open(2)
    capture.stored(capture.send("m1", by=2), 4, by=2)
    _, lost, _, sent = capture.lines(Send)
    assert (lost.type, lost.error, lost.value) == (Type.INFO, "the connection closed", SendValue(attempts=2))
    assert (sent.type, sent.value.attempts) == (Type.OK, 2)


@pytest.mark.parametrize(
    ("code", "how", "status"),
    [
        (ResponseCode.FLUSH_DISK_TIMEOUT, Type.OK, "FLUSH_DISK_TIMEOUT"),
        (ResponseCode.FLUSH_SLAVE_TIMEOUT, Type.OK, "FLUSH_SLAVE_TIMEOUT"),
        (ResponseCode.SLAVE_NOT_AVAILABLE, Type.OK, "SLAVE_NOT_AVAILABLE"),
        (ResponseCode.SYSTEM_BUSY, Type.FAIL, ""),
        (ResponseCode.SYSTEM_ERROR, Type.INFO, ""),
        (12345, Type.FAIL, ""),
    ],
)
def test_the_response_code_decides_the_outcome(capture: Written, code: int, how: Type, status: str) -> None:
    capture.stored(capture.send("m1"), 4, code=code)
    _, sent = capture.lines(Send)
    assert (sent.type, sent.value.status) == (how, status)


def test_half_messages_have_no_outcome_and_delayed_ones_no_place(capture: Written) -> None:
    capture.stored(capture.send("m1", flags=4), 0)
    capture.stored(capture.send("m2", TRAN_MSG="true", PGROUP="P"), 0)
    capture.stored(capture.send("m3", DELAY="3"), 0)
    _, half, _, other, asked, later = capture.lines(Send)
    assert (half.type, other.type) == (Type.INFO, Type.INFO)
    assert asked.value.messages[0].deliver_at
    assert (later.type, later.value.queue, later.value.offset) == (Type.OK, "", -1)


def test_a_failed_message_that_a_consumer_sends_itself_is_no_new_message(capture: Written) -> None:
    capture.stored(capture.send("m1"), 0)
    capture.stored(capture.send("m1", topic="%RETRY%G"), 0)
    assert len(capture.lines(Send)) == 2


def test_commits_that_go_back_are_resets_unless_the_broker_ignores_them(capture: Written) -> None:
    for offset, only_forward in ((5, None), (3, True), (2, None)):
        header = UpdateOffsetRequest("G", "T", 0, offset, only_forward)
        capture.answer(capture.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header), {})
    commits = [line.value for line in capture.lines(Commit) if line.type is Type.OK]
    assert [(value.offset, value.reset) for value in commits] == [(5, False), (2, True)]


def test_a_commit_without_an_answer_is_open(capture: Written) -> None:
    header = UpdateOffsetRequest("G", "T", 0, 5)
    capture.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header, oneway=True)
    assert [line.type for line in capture.lines(Commit)] == [Type.INVOKE, Type.INFO]


def _query(capture: Written, offset: int | None) -> None:
    request = capture.ask(RequestCode.QUERY_CONSUMER_OFFSET, headers.QueryOffsetRequest("G", "T", 0))
    if offset is None:
        capture.answer(request, {}, code=ResponseCode.QUERY_NOT_FOUND)
    else:
        capture.answer(request, {"offset": offset})


def test_a_committed_offset_may_only_go_back_after_a_crash(tmp_path: Path) -> None:
    verdicts = []
    for crashes in (False, True):
        capture = Written(tmp_path / f"c{crashes}")
        header = UpdateOffsetRequest("G", "T", 0, 5)
        capture.answer(capture.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header), {})
        if crashes:
            for kind in ("kill", "start"):
                capture.writer.write_object(Recorded.NODE, 0, NodeChange(kind, "b"))
        _query(capture, 2)
        history = capture.lines()
        assert sum(type(line) is Fault for line in history) == 2 * crashes
        verdicts.append({each.rule.id: each.finding.verdict for each in judge(history)}["C06"])
    assert verdicts[0] is Verdict.VIOLATED
    assert verdicts[1] is not Verdict.VIOLATED


def test_a_group_without_an_offset_is_asked_for_it(capture: Written) -> None:
    _query(capture, None)
    assert [line.value.offset for line in capture.lines(Query)] == [-1, -1]


def test_messages_from_before_the_capture_are_sends_with_an_unknown_outcome(capture: Written) -> None:
    request = capture.poll(0)
    fields = {"suggestWhichBrokerId": 0, "nextBeginOffset": 2, "minOffset": 0, "maxOffset": 2}
    body = _record(0, "old", 9_000_000) + _record(1, "ghost", 11_000_000)
    capture.answer(request, fields, body)
    history = capture.lines()
    before = [line for line in history if type(line) is Send]
    assert [(line.type, line.process) for line in before] == [(Type.INVOKE, "before"), (Type.INFO, "before")]
    (found,) = [each.finding for each in judge(history) if each.rule.id == "A04"]
    assert found.witnesses[0].text.endswith("received ghost, which was never sent")


def _joined(capture: Written, client: str, *subscriptions: Subscription, **more: Any) -> None:
    data = ConsumerData("G", subscription_data_set=list(subscriptions), **more)
    capture.ask(RequestCode.HEART_BEAT, None, java_json.write(Heartbeat(client, [data]), standard=True))


def test_heartbeats_name_the_clients_and_the_groups(capture: Written) -> None:
    _joined(
        capture, "c1", Subscription("T", "a || b"), Subscription("%RETRY%G"), message_model="BROADCASTING"
    )
    request = capture.poll(0, expression=("a || b", "TAG"))
    fields = {"nextBeginOffset": 2, "minOffset": 0, "maxOffset": 2}
    capture.answer(request, fields, _record(0, "m1", tag="a") + _record(1, "m2", tag="c"))
    setup, *_, poll, polled = capture.lines()
    group = setup.value.groups["G"]
    assert (group.tags, group.broadcast) == (("a", "b"), True)
    assert poll.value.client == "c1"
    assert [message.id for message in polled.value.messages] == ["m1", "m2"]  # the broker must not deliver m2


@pytest.mark.parametrize("other", [("price > 3", "SQL92"), ("b", "TAG")])
def test_groups_whose_selection_cannot_be_judged_are_left_out(
    capture: Written, other: tuple[str, str]
) -> None:
    capture.found(capture.poll(0, expression=("a", "TAG")), 5)
    capture.found(capture.poll(5, expression=other), 9)
    assert capture.lines(Poll) == []


def test_a_slave_answers_for_itself_and_has_no_offsets_to_judge(capture: Written) -> None:
    capture.open(2, broker_id=1)
    capture.found(capture.poll(0, by=2), 1, (0, "m1"), by=2)
    capture.ask(RequestCode.UPDATE_CONSUMER_OFFSET, UpdateOffsetRequest("G", "T", 0, 1), by=2)
    history = capture.lines()
    assert [line.value.node for line in history if type(line) is Poll] == ["", "b/1"]
    assert not [line for line in history if type(line) is Commit]


def test_without_its_end_a_capture_proves_nothing(tmp_path: Path) -> None:
    verdicts: list[set[Verdict]] = []
    shorten: tuple[Callable[[bytes], bytes], ...] = (lambda data: data, lambda data: data[:-1])
    for change in shorten:
        capture = Written(tmp_path / "c")
        capture.stored(capture.send("m1"), 0)
        capture.found(capture.poll(0), 1, (0, "m1"))
        capture.writer.close()
        capture.path.write_bytes(change(capture.path.read_bytes()))
        verdicts.append({each.finding.verdict for each in judge(history_of(capture.path))})
    assert Verdict.HELD in verdicts[0]
    assert Verdict.HELD not in verdicts[1]


def test_another_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b"nothing")
    with pytest.raises(CaptureError):
        list(history_of(tmp_path / "c"))
    assert msgspec.json.encode(NodeChange("kill", "b"))
