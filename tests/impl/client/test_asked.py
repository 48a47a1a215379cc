"""What brokers ask of a client, and its answers."""

from collections.abc import Mapping

import pytest

from impl.client.asked import processors
from impl.client.model import MessageQueue
from impl.remoting import headers, java_json
from impl.remoting.bodies import ConsumerStatus, QueueOffsets
from impl.remoting.bodies import MessageQueue as NamedQueue
from impl.remoting.codes import RequestCode, ResponseCode
from impl.remoting.command import Command, new_request
from impl.remoting.dispatch import handler
from impl.remoting.headers import ConsumerGroupRequest, ConsumerStatusRequest, ResetOffsetRequest
from impl.remoting.java_json import ObjectKey

QUEUE = MessageQueue("T", "b", 3)
KEY = ObjectKey(NamedQueue("b", 3, "T"))


class FakeMember:
    def __init__(self) -> None:
        self.told: list[object] = []

    def members_changed(self) -> None:
        self.told.append("members")

    def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        self.told.append((topic, dict(offsets)))

    def progress(self, topic: str) -> Mapping[MessageQueue, int]:
        return {QUEUE: 7} if topic == "T" else {}


def ask(members: dict[str, FakeMember], code: int, header: headers.Header, body: bytes = b"") -> Command:
    answer = handler(processors(members))(new_request(code, headers.write(header), body), None)  # type: ignore[arg-type]  # not looked at
    assert isinstance(answer, Command)
    return answer


def test_a_change_of_one_group_makes_all_members_look_again() -> None:
    members = {"G": FakeMember(), "H": FakeMember()}
    ask(members, RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, ConsumerGroupRequest("G"))
    assert [member.told for member in members.values()] == [["members"], ["members"]]


@pytest.mark.parametrize(
    "body",
    [
        b'{"offsetTable":{{"brokerName":"b","queueId":3,"topic":"T"}:42}}',
        java_json.write(QueueOffsets({KEY: 42}), standard=True),
    ],
)
def test_a_reset_reaches_the_member_of_the_group_in_either_dialect(body: bytes) -> None:
    members = {"G": FakeMember(), "H": FakeMember()}
    answer = ask(
        members, RequestCode.RESET_CONSUMER_CLIENT_OFFSET, ResetOffsetRequest("T", "G", 0, True), body
    )
    assert answer.code == ResponseCode.SUCCESS
    assert members["G"].told == [("T", {QUEUE: 42})]
    assert members["H"].told == []


def test_how_far_a_member_is() -> None:
    header = ConsumerStatusRequest("T", "G")
    answer = ask({"G": FakeMember()}, RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, header)
    assert java_json.read(ConsumerStatus, answer.body).message_queue_table == {KEY: 7}


def test_what_is_asked_of_a_group_that_is_not_here_is_refused() -> None:
    header = ConsumerStatusRequest("T", "G")
    answer = ask({}, RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, header)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "no consumer of group G is here")


@pytest.mark.parametrize("body", [b"", b'{"offsetTable":{"x":1}}', b'{"offsetTable":{{"topic":1}:1}}'])
def test_a_body_that_makes_no_sense_resets_nothing(body: bytes) -> None:
    member = FakeMember()
    header = ResetOffsetRequest("T", "G", 0, True)
    answer = ask({"G": member}, RequestCode.RESET_CONSUMER_CLIENT_OFFSET, header, body)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert member.told == []
