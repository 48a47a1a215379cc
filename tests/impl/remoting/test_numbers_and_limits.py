"""Codes by number, the longest bodies, and the members of headers at their limits.

Source: docs/reference/protocol/framing.md, "Request codes", "Response codes" and "Operation headers".
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from mqproof.conformance.adapters.inspections.site import CODES
from mqproof.impl.remoting import codes, headers, requests
from tests.impl.compared import Compared

_RESPONSES: Final[Mapping[int, str]] = {
    0: "SUCCESS", 1: "SYSTEM_ERROR", 2: "SYSTEM_BUSY", 3: "REQUEST_CODE_NOT_SUPPORTED",
    10: "FLUSH_DISK_TIMEOUT", 11: "SLAVE_NOT_AVAILABLE", 12: "FLUSH_SLAVE_TIMEOUT", 13: "MESSAGE_ILLEGAL",
    14: "SERVICE_NOT_AVAILABLE", 16: "NO_PERMISSION", 17: "TOPIC_NOT_EXIST", 19: "PULL_NOT_FOUND",
    20: "PULL_RETRY_IMMEDIATELY", 21: "PULL_OFFSET_MOVED", 22: "QUERY_NOT_FOUND",
    23: "SUBSCRIPTION_PARSE_FAILED", 24: "SUBSCRIPTION_NOT_EXIST", 25: "SUBSCRIPTION_NOT_LATEST",
    26: "SUBSCRIPTION_GROUP_NOT_EXIST", 27: "FILTER_DATA_NOT_EXIST", 28: "FILTER_DATA_NOT_LATEST",
    204: "NO_BUYER_ID", 205: "NOT_IN_CURRENT_UNIT", 206: "CONSUMER_NOT_ONLINE", 207: "CONSUME_MSG_TIMEOUT",
    209: "UPDATE_ACL_CONFIG_FAILED", 210: "DELETE_ACL_CONFIG_FAILED",
    211: "UPDATE_GLOBAL_WHITE_ADDRS_FAILED", 215: "FLOW_CONTROL", 604: "ILLEGAL_OPERATION", 1500: "GO_AWAY",
}  # fmt: skip


_RETRIED: Final = frozenset({1, 2, 14, 16, 17, 204, 205, 1500})
"""The codes after which a synchronous send tries another broker."""


_INT, _LONG = 1 << 31, 1 << 63


_NAME, _LIST, _VALUE, _IDS = 1 << 10, 64 << 10, 512 << 10, 1 << 20


_MIB: Final = 1 << 20


_OF_1_MIB: Final = (
    "HEART_BEAT", "CHECK_CLIENT_CONFIG", "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", "UPDATE_BROKER_CONFIG",
    "SET_MESSAGE_REQUEST_MODE", "AUTH_CREATE_USER", "AUTH_UPDATE_USER", "AUTH_CREATE_ACL", "AUTH_UPDATE_ACL",
    "UPDATE_NAMESRV_CONFIG", "QUERY_DATA_VERSION",
)  # fmt: skip


_OF_4_MIB: Final = (
    "LOCK_BATCH_MQ", "UNLOCK_BATCH_MQ", "UPDATE_AND_CREATE_TOPIC_LIST",
    "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST", "REGISTER_MESSAGE_FILTER_CLASS", "REGISTER_TOPIC_IN_NAMESRV",
)  # fmt: skip


_OF_A_FRAME: Final = (
    "SEND_MESSAGE", "SEND_MESSAGE_V2", "SEND_BATCH_MESSAGE", "SEND_REPLY_MESSAGE", "SEND_REPLY_MESSAGE_V2",
    "REGISTER_BROKER",
)  # fmt: skip


def test_responses_have_their_names() -> None:
    site = Compared()
    for code in range(-1, max(_RESPONSES) + 2):
        name = _RESPONSES.get(code, f"CODE_{code}")
        site.compare(f"the name of response {code}", name, codes.response_name(code))
        what = f"whether a send tries another broker after {name}"
        site.compare(what, code in _RETRIED, codes.is_retriable(code))


def test_bodies_have_their_limits() -> None:
    """The requests that use their body, and the longest body of each one."""
    site = Compared()
    limits = {
        CODES[name]: most
        for names, most in ((_OF_1_MIB, _MIB), (_OF_4_MIB, 4 * _MIB), (_OF_A_FRAME, 16 * _MIB))
        for name in names
    }
    site.compare("the requests that use their body", sorted(limits), sorted(requests.BODIES_USED))
    for code, most in limits.items():
        form = requests.FORMS[code]
        site.compare(f"the longest body of request {code}", most, form.body_bytes_max)


def test_members_have_their_limits() -> None:
    """Read headers with members at their limits and beyond; write them again."""
    site = Compared()
    queue = {"topic": "t", "queueId": "0"}
    searched = {**queue, "timestamp": "0"}
    for kind, whole, name, most in (
        (headers.QueueRequest, queue, "topic", _NAME),
        (headers.RecallMessageRequest, {"topic": "t", "recallHandle": "x"}, "recallHandle", _LIST),
        (headers.PushReplyRequest, _PUSHED, "properties", _LIST),
        (headers.PutKvRequest, {"namespace": "n", "key": "k", "value": "v"}, "value", _VALUE),
        (headers.SendResponse, {"msgId": "1", "queueId": "0", "queueOffset": "0"}, "msgId", _IDS),
    ):
        _compare(site, kind, whole, name, (("x" * most, True), ("x" * (most + 1), False)))
    _compare(site, headers.QueueRequest, queue, "queueId", _whole_numbers(_INT))
    _compare(site, headers.SearchOffsetRequest, searched, "timestamp", _whole_numbers(_LONG))
    register = {
        "brokerName": "b", "brokerAddr": "a", "clusterName": "c", "haServerAddr": "h", "brokerId": "0",
    }  # fmt: skip
    truth = (("true", True), ("false", True), ("1", True), ("0", True), ("", False), ("yes", False))
    _compare(site, headers.RegisterBrokerRequest, register, "compressed", truth)
    values = ("p", "t", "d", "4", "0", "1", "2", "3", "x", "5")
    names = (*list(_PUSHED)[:8], "properties", "reconsumeTimes")
    sent = headers.read(headers.SendRequest, dict(zip(names, values, strict=True)))
    letters = dict(zip("abcdefghij", values, strict=True))
    site.compare("a header with names of one letter", letters, headers.write_send_v2(sent))
    for of, members, defaults in (
        (headers.RegisterBrokerRequest, register, {"compressed": "false", "bodyCrc32": "0"}),
        (headers.RouteRequest, {"topic": "t"}, {"acceptStandardJsonOnly": "false"}),
        (headers.CloneOffsetRequest, {"srcGroup": "s", "destGroup": "d"}, {"offline": "false"}),
        (headers.UpdateTopicRequest, {"topic": "t", "defaultTopic": "d", "readQueueNums": "1",
         "writeQueueNums": "2", "perm": "6"}, {"topicFilterType": "SINGLE_TAG", "order": "false"}),
    ):  # fmt: skip
        found = headers.write(headers.read(of, dict(members)))
        site.compare(f"a {of.__name__} without its other members", {**members, **defaults}, found)


_PUSHED: Final = dict.fromkeys(
    ("producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag", "bornTimestamp",
     "flag", "bornHost", "storeHost", "storeTimestamp"), "1",
)  # fmt: skip


def _whole_numbers(end: int) -> Iterator[tuple[str, bool]]:
    yield from ((str(number), True) for number in (-end, -1, 0, end - 1))
    yield from ((text, False) for text in (str(-end - 1), str(end), "", "x", "1.5", "0x1", "true"))


def _compare(
    site: Compared, kind: type[headers.Header], whole: Mapping[str, str], name: str,
    values: Iterable[tuple[str, bool]],
) -> None:  # fmt: skip
    for value, is_allowed in values:
        given = {**whole, name: value}
        what = f"{name} of {kind.__name__} with {value[:30]!r} of {len(value)} characters"
        refusal = _refusal(kind, given)
        site.compare(f"whether {what} is allowed", is_allowed, not refusal, refusal)
        if refusal:
            site.compare(f"whether the refusal of {what} names it", True, f"`$.{name}`" in refusal, refusal)
        elif is_allowed:
            shown = {"1": "true", "0": "false"}.get(value, value) if name == "compressed" else value
            site.compare(f"{what}, written again", shown, headers.write(headers.read(kind, given))[name])
    refusal = _refusal(kind, {key: value for key, value in whole.items() if key != name})
    site.compare(f"whether {kind.__name__} needs {name}", name not in _OPTIONAL, f"`{name}`" in refusal)


def _refusal(kind: type[headers.Header], fields: dict[str, str]) -> str:
    """Return why the fields are refused; an empty text if they are not."""
    try:
        headers.read(kind, fields)
    except headers.HeaderError as error:
        return str(error)
    return ""


_OPTIONAL: Final = ("properties", "compressed")
