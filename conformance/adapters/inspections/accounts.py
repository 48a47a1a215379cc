"""Every request by accounts with different permissions, and the administration of accounts.

See docs/reference/protocol/access-control.md.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site, in_bytes, written
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame

_REFUSED: Final = "AclException"
SECRET: Final = "a secret of 7 or more"
_V5: Final = 413
_FORBIDDEN: Final = ("SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC")
_TRACES: Final = "RMQ_SYS_TRACE_TOPIC"

Need = tuple[str, str, str]
"""The kind, the name, and the permissions of which one is necessary: P or S."""


def _words(text: str) -> str:
    return "|".join({"P": "PUB", "S": "SUB", "A": "ANY", "D": "DENY"}[letter] for letter in text)


@dataclass(frozen=True, slots=True)
class Account:
    """An account as the file has it. Permissions are texts of P, S, A for any, and D for denied."""

    key: str
    admin: bool = False
    topics: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    default_topic: str = ""
    default_group: str = ""

    def may(self, needs: tuple[Need, ...]) -> bool:
        if self.admin and not self.topics and not self.groups:
            return True
        return all(self._has(*need) for need in needs)

    def _has(self, kind: str, name: str, wanted: str) -> bool:
        listed, default = {
            "topic": (self.topics, "" if name in _FORBIDDEN else self.default_topic),
            "group": (self.groups, self.default_group),
        }[kind]
        granted = listed.get(name, default)
        return "D" not in granted and ("A" in granted or bool(set(wanted) & set(granted)))

    def entry(self) -> dict[str, Any]:
        return {
            "accessKey": self.key,
            "secretKey": SECRET,
            "admin": self.admin,
            "defaultTopicPerm": _words(self.default_topic),
            "defaultGroupPerm": _words(self.default_group),
            "topicPerms": [f"{name}={_words(text)}" for name, text in self.topics.items()],
            "groupPerms": [f"{name}={_words(text)}" for name, text in self.groups.items()],
        }


ADMIN: Final = Account("administrator", admin=True)
_ACCOUNTS: Final = (
    ADMIN,
    Account("listed-admin", admin=True, topics={"t": "P"}),
    Account("publisher", topics={"t": "P"}, groups={"g": "S"}),
    Account("subscriber", topics={"t": "S"}, groups={"g": "S"}),
    Account("no-group", topics={"t": "PS"}),
    Account("any-name", topics={"t": "A"}, groups={"g": "A"}),
    Account("defaults", default_topic="PS", default_group="S"),
    Account("any-default", default_topic="A", default_group="A"),
    Account("denied-one", topics={"t": "D"}, default_topic="A", default_group="S"),
    Account("nothing"),
)
FILE: Final = json.dumps(
    {"globalWhiteRemoteAddresses": ["10.0.9.9"], "accounts": [each.entry() for each in _ACCOUNTS]}
)
_TOOLS: Final = json.dumps({"accessKey": ADMIN.key, "secretKey": SECRET, "securityToken": "a token"})


_SUBSCRIPTION: Final = {"topic": "t", "subString": "*", "subVersion": 1, "expressionType": "TAG"}
_HEARTBEAT: Final = {
    "clientID": "c",
    "consumerDataSet": [{"groupName": "g", "subscriptionDataSet": [_SUBSCRIPTION]}],
    "producerDataSet": [],
}
_LOCKS: Final = {
    "consumerGroup": "g", "clientId": "c", "mqSet": [{"topic": "t", "brokerName": "broker-a", "queueId": 0}],
}  # fmt: skip
_CHECK: Final = {"clientId": "c", "group": "g", "subscriptionData": _SUBSCRIPTION}
_T: Final = {"topic": "t"}
_PUB, _SUB, _USE = ("topic", "t", "P"), ("topic", "t", "S"), ("topic", "t", "PS")
_GROUP: Final = ("group", "g", "S")

_Row = tuple[str, Mapping[str, str], Any, tuple[Need, ...]]


def _rows(place: str, message_id: str) -> Iterator[_Row]:
    """Yield requests of clients with what they need; `place` is that of a message of topic t."""
    for name, topic in (
        ("SEND_MESSAGE", "topic"), ("SEND_MESSAGE_V2", "b"), ("SEND_BATCH_MESSAGE", "b"),
        ("SEND_REPLY_MESSAGE", "topic"), ("SEND_REPLY_MESSAGE_V2", "b"), ("RECALL_MESSAGE", "topic"),
    ):  # fmt: skip
        yield name, {topic: "t"}, b"", (_PUB,)
        yield name, {topic: "%RETRY%g"}, b"", (_GROUP,)
    for name in ("PULL_MESSAGE", "LITE_PULL_MESSAGE", "QUERY_CONSUMER_OFFSET", "UPDATE_CONSUMER_OFFSET"):
        yield name, {**_T, "consumerGroup": "g"}, b"", (_SUB, _GROUP)
        yield name, {"topic": "%RETRY%g", "consumerGroup": "g"}, b"", (_GROUP,)
        for hidden in _FORBIDDEN:
            yield name, {"topic": hidden, "consumerGroup": "g"}, b"", (("topic", hidden, "S"), _GROUP)
    yield "END_TRANSACTION", _end_of(place), b"", (_PUB,)
    yield "CONSUMER_SEND_MSG_BACK", {"offset": place, "group": "g"}, b"", (_SUB, _GROUP)
    yield "VIEW_MESSAGE_BY_ID", {"offset": place}, b"", (_SUB,)
    yield "CONSUME_MESSAGE_DIRECTLY", {"msgId": message_id, "consumerGroup": "g"}, b"", (_SUB, _GROUP)
    yield "HEART_BEAT", {}, _HEARTBEAT, (_SUB, _GROUP)
    yield "LOCK_BATCH_MQ", {}, _LOCKS, (_SUB, _GROUP)
    yield "UNLOCK_BATCH_MQ", {}, _LOCKS, (_SUB, _GROUP)
    yield "CHECK_CLIENT_CONFIG", {}, _CHECK, (_SUB, _GROUP)
    yield "UNREGISTER_CLIENT", {"clientID": "c", "consumerGroup": "g"}, b"", (_GROUP,)
    yield "UNREGISTER_CLIENT", {"clientID": "c", "producerGroup": "p"}, b"", ()
    for name in ("QUERY_MESSAGE", "QUERY_CONSUME_QUEUE"):
        yield name, _T, b"", (_SUB,)
    for name in (
        "SEARCH_OFFSET_BY_TIMESTAMP", "GET_MAX_OFFSET", "GET_MIN_OFFSET", "GET_EARLIEST_MSG_STORETIME",
        "GET_TOPIC_STATS_INFO", "GET_TOPIC_CONFIG", "QUERY_TOPIC_CONSUME_BY_WHO",
    ):  # fmt: skip
        yield name, _T, b"", (_USE,)
    for name in (
        "GET_CONSUMER_LIST_BY_GROUP", "GET_CONSUMER_CONNECTION_LIST", "GET_CONSUMER_RUNNING_INFO",
        "GET_CONSUME_STATS",
    ):  # fmt: skip
        yield name, {"consumerGroup": "g"}, b"", (_GROUP,)
    yield "GET_CONSUME_STATS", {"consumerGroup": "g", **_T}, b"", (_GROUP, _SUB)
    for name in (
        "GET_SUBSCRIPTIONGROUP_CONFIG",
        "QUERY_TOPICS_BY_CONSUMER",
        "QUERY_SUBSCRIPTION_BY_CONSUMER",
    ):
        yield name, {"group": "g"}, b"", (_GROUP,)
    yield "QUERY_SUBSCRIPTION_BY_CONSUMER", {"group": "g", **_T}, b"", (_GROUP, _SUB)
    for name in ("INVOKE_BROKER_TO_GET_CONSUMER_STATUS", "QUERY_CONSUME_TIME_SPAN"):
        yield name, {**_T, "group": "g"}, b"", (_SUB, _GROUP)
    yield "QUERY_CORRECTION_OFFSET", {**_T, "compareGroup": "g"}, b"", (_SUB, _GROUP)


def _end_of(place: str) -> dict[str, str]:
    return {
        "producerGroup": "p", "tranStateTableOffset": "0", "commitLogOffset": place, "commitOrRollback": "8",
        "msgId": "none",
    }  # fmt: skip


_ADMINISTRATION: Final = (
    "UPDATE_AND_CREATE_TOPIC", "UPDATE_AND_CREATE_TOPIC_LIST", "DELETE_TOPIC_IN_BROKER",
    "GET_ALL_TOPIC_CONFIG", "GET_SYSTEM_TOPIC_LIST_FROM_BROKER", "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP",
    "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST", "DELETE_SUBSCRIPTIONGROUP",
    "GET_ALL_SUBSCRIPTIONGROUP_CONFIG", "INVOKE_BROKER_TO_RESET_OFFSET", "CLONE_GROUP_OFFSET",
    "GET_ALL_CONSUMER_OFFSET", "GET_ALL_DELAY_OFFSET", "GET_BROKER_CONSUME_STATS", "VIEW_BROKER_STATS_DATA",
    "GET_PRODUCER_CONNECTION_LIST", "GET_ALL_PRODUCER_INFO", "RESUME_CHECK_HALF_MESSAGE",
    "UPDATE_BROKER_CONFIG", "GET_BROKER_CONFIG", "GET_BROKER_RUNTIME_INFO", "REGISTER_FILTER_SERVER",
    "GET_BROKER_HA_STATUS", "SET_MESSAGE_REQUEST_MODE", "GET_ALL_MESSAGE_REQUEST_MODE",
    "CLEAN_EXPIRED_CONSUMEQUEUE", "CLEAN_UNUSED_TOPIC", "DELETE_EXPIRED_COMMITLOG",
    "UPDATE_AND_CREATE_ACL_CONFIG", "DELETE_ACL_CONFIG", "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG",
    "GET_BROKER_CLUSTER_ACL_INFO", "AUTH_CREATE_USER", "AUTH_UPDATE_USER", "AUTH_DELETE_USER",
    "AUTH_GET_USER", "AUTH_LIST_USER", "AUTH_CREATE_ACL", "AUTH_UPDATE_ACL", "AUTH_DELETE_ACL",
    "AUTH_GET_ACL", "AUTH_LIST_ACL",
)  # fmt: skip
_OF_NAME_SERVERS: Final = (
    "REGISTER_BROKER", "UNREGISTER_BROKER", "BROKER_HEARTBEAT", "QUERY_DATA_VERSION",
    "REGISTER_TOPIC_IN_NAMESRV", "DELETE_TOPIC_IN_NAMESRV", "WIPE_WRITE_PERM_OF_BROKER",
    "ADD_WRITE_PERM_OF_BROKER", "PUT_KV_CONFIG", "DELETE_KV_CONFIG", "UPDATE_NAMESRV_CONFIG",
)  # fmt: skip
_WITHOUT_ACCOUNT: Final = (
    "GET_NAMESRV_CONFIG", "GET_KV_CONFIG", "GET_KVLIST_BY_NAMESPACE", "GET_BROKER_MEMBER_GROUP",
    "GET_ROUTEINFO_BY_TOPIC", "GET_BROKER_CLUSTER_INFO", "GET_ALL_TOPIC_LIST_FROM_NAMESERVER",
    "GET_TOPICS_BY_CLUSTER", "GET_SYSTEM_TOPIC_LIST_FROM_NS", "GET_UNIT_TOPIC_LIST",
    "GET_HAS_UNIT_SUB_TOPIC_LIST", "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST",
)  # fmt: skip


def signed(
    fields: Mapping[str, str], body: bytes, key: str, secret: str, *, without: str = "", **others: str
) -> dict[str, str]:
    """Return the fields with those of a signature; the field `without` is not signed."""
    given = {**fields, "AccessKey": key, **others}
    ordered = sorted((name for name in given if name != without), key=lambda name: name.encode("utf-16-be"))
    content = "".join(given[name] for name in ordered).encode() + body
    digest = hmac.new(secret.encode(), content, hashlib.sha1).digest()
    return {**given, "Signature": base64.b64encode(digest).decode()}


class Visitor:
    """Sends signed requests, and compares whether they are refused."""

    def __init__(self, site: Site, line: RawClient) -> None:
        self.site = site
        self.line = line

    async def ask(self, account: Account, name: str, body: Any = b"", **fields: object) -> Frame:
        data = in_bytes(body)
        texts = {key: written(value) for key, value in fields.items()}
        return await self.line.request(CODES[name], signed(texts, data, account.key, SECRET), data)

    async def is_allowed(self, account: Account, name: str, body: Any, fields: Mapping[str, str]) -> bool:
        answer = await self.ask(account, name, body, **fields)
        return not self.is_refused(name, answer)

    def is_refused(self, name: str, answer: Frame, code: int = 1) -> bool:
        refused = (answer.remark or "").startswith(_REFUSED)
        if refused:
            self.site.compare(f"the code of the refusal of {name}", code, answer.code)
        return refused


async def permissions(site: Site) -> None:
    """Send every request by every account."""
    site.rule = chapters.ACCESS_CONTROL
    line = await site.client()
    visitor = Visitor(site, line)
    await visitor.ask(
        ADMIN, "UPDATE_AND_CREATE_TOPIC", topic="t", defaultTopic="TBW102", readQueueNums=1,
        writeQueueNums=1, perm=6, topicFilterType="SINGLE_TAG", topicSysFlag=0, order=False,
    )  # fmt: skip
    sent = await _sent(visitor, "m", "UNIQ_KEY\x01m\x02KEYS\x01k")
    later = await _sent(visitor, "later", "DELAY\x0118")
    late = str(int(sent.fields.get("msgId", "0")[-16:], 16))
    for name, fields, body, needs in _rows(late, sent.fields.get("msgId", "")):
        for account in _ACCOUNTS:
            allowed = await visitor.is_allowed(account, name, body, fields)
            what = f"whether {account.key} may send {name} {dict(fields)}"
            site.compare(what, account.may(needs), allowed)
    await _waiting(visitor, later)
    await _administration(site, visitor)
    await _signatures(site, visitor, line)


async def _waiting(visitor: Visitor, later: Frame) -> None:
    """A message that waits belongs to its topic; a property of a producer changes nothing."""
    other = await _sent(visitor, "other", "REAL_TOPIC\x01u")
    for sent in (later, other):
        place = {"offset": str(int(sent.fields["msgId"][-16:], 16))}
        for account in _ACCOUNTS:
            allowed = await visitor.is_allowed(account, "VIEW_MESSAGE_BY_ID", b"", place)
            visitor.site.compare(f"whether {account.key} may view {place}", account.may((_SUB,)), allowed)


async def _sent(visitor: Visitor, text: str, properties: str) -> Frame:
    answer = await visitor.ask(
        ADMIN, "SEND_MESSAGE_V2", text, a="p", b="t", c="TBW102", d=4, e=0, f=0, g=visitor.site.now_ms, h=0,
        i=properties, j=0, k=False, m=False,
    )  # fmt: skip
    visitor.site.compare("the code of a send", 0, answer.code, answer.remark)
    return answer


async def _administration(site: Site, visitor: Visitor) -> None:
    """Administrators may send the requests of administrators, and no other account may."""
    names = Visitor(site, await site.client(to=site.name_server))
    for at, requests in ((visitor, _ADMINISTRATION), (names, _OF_NAME_SERVERS)):
        for name in requests:
            for account in (ADMIN, _ACCOUNTS[1], _ACCOUNTS[7]):
                allowed = await at.is_allowed(account, name, b"", {})
                site.compare(f"whether {account.key} may send {name}", account.admin, allowed)
            answer = await at.line.request(CODES[name], {})
            site.compare(f"whether {name} without account is refused", True, at.is_refused(name, answer))
    for name in _WITHOUT_ACCOUNT:
        answer = await names.line.request(CODES[name], {})
        site.compare(f"whether {name} needs an account", False, names.is_refused(name, answer))
    info = await names.line.request(CODES["GET_BROKER_CLUSTER_INFO"], {})
    known = java_values.read(info.body)["brokerAddrTable"]
    site.compare("the brokers that registered with their account", ["broker-a"], sorted(known))


async def _signatures(site: Site, visitor: Visitor, line: RawClient) -> None:
    """Refuse what is not signed, or signed otherwise; accept what releases leave out."""

    async def refused(what: str, expected: bool, name: str, fields: Mapping[str, str], body: bytes) -> None:
        answer = await line.request(CODES[name], fields, body)
        site.compare(f"whether {what} is refused", expected, visitor.is_refused(name, answer))

    good = signed({"topic": "t", "queueId": "0"}, b"", ADMIN.key, SECRET)
    await refused("a signed request", False, "GET_MAX_OFFSET", good, b"")
    for what, fields, body in (
        ("another value", {**good, "queueId": "1"}, b""),
        ("another body", good, b"x"),
        ("another secret", signed({"topic": "t"}, b"", ADMIN.key, "another secret"), b""),
        ("an unknown key", signed({"topic": "t"}, b"", "unknown-key", SECRET), b""),
        ("no key", {"topic": "t"}, b""),
        ("no signature", {"topic": "t", "AccessKey": ADMIN.key}, b""),
    ):
        await refused(what, True, "GET_MAX_OFFSET", fields, body)
    token = signed({"topic": "t", "queueId": "0"}, b"", ADMIN.key, SECRET, SecurityToken="token")
    await refused("a token", False, "GET_MAX_OFFSET", token, b"")
    query = {
        "topic": "t", "key": "k", "maxNum": "1", "beginTimestamp": "0", "endTimestamp": str(1 << 60),
        "_UNIQUE_KEY_QUERY": "false",
    }  # fmt: skip
    for name, is_refused in (("QUERY_MESSAGE", False), ("GET_MAX_OFFSET", True)):
        part = signed(query, b"", ADMIN.key, SECRET, without="_UNIQUE_KEY_QUERY")
        await refused(f"{name} with an unsigned flag", is_refused, name, part, b"")
    trace = Account("nothing")
    allowed = await visitor.is_allowed(trace, "SEND_MESSAGE", b"", {"topic": _TRACES})
    site.compare("whether traces may be sent with a signature only", True, allowed)
    unknown = signed({}, b"", ADMIN.key, SECRET)
    answer = await line.request(9999, unknown)
    site.compare("the code of an unknown request", 3, answer.code, answer.remark)
    answer = await line.request(CODES["GET_BROKER_CONFIG"], {}, version=_V5)
    site.compare("whether 5.x is refused", True, visitor.is_refused("GET_BROKER_CONFIG", answer, 16))
    answer = await line.request(CODES["GET_BROKER_CONFIG"], {}, version=_V5 - 1)
    site.compare("whether 4.9 is refused", True, visitor.is_refused("GET_BROKER_CONFIG", answer))
    white = await site.client(host="10.0.9.9")
    answer = await white.request(CODES["GET_BROKER_CONFIG"], {})
    site.compare("the code for an address of the white list", 0, answer.code, answer.remark)


PERMISSIONS: Final = Inspection(
    "permissions", permissions, {"acl_enabled": True, "property_filter": True}, {"acl_enabled": True},
    {"/store/config/plain_acl.yml": FILE, "/store/config/tools.yml": _TOOLS},
    {"/names/plain_acl.yml": FILE},
)  # fmt: skip
