"""Lists, tables, texts and nesting in JSON bodies at their limits and one beyond; constants of consumers.

See docs/reference/protocol/framing.md, "Operation headers" and "JSON bodies".
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import CODES, HOST, Inspection, Site
from mqproof.conformance.adapters.inspections.traffic import beat, make_group, subscription
from mqproof.conformance.wire import chapters

_FEW, _GROUPS, _TAGS, _MANY, _TOPICS = 1000, 1000, 4096, 10_000, 100_000
_NAME, _LIST, _NESTING = 1024, 64 << 10, 16
_CONSTANTS: Final = {
    "consumeFromWhere": (
        "CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
        "CONSUME_FROM_MIN_OFFSET", "CONSUME_FROM_MAX_OFFSET", "CONSUME_FROM_FIRST_OFFSET",
        "CONSUME_FROM_TIMESTAMP",
    ),
    "consumeType": ("CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP"),
    "messageModel": ("BROADCASTING", "CLUSTERING"),
}  # fmt: skip
"""The constants of RocketMQ in the order of their ordinals, which C++ clients send."""


class _Case(NamedTuple):
    """A body with a part of a variable size."""

    request: str
    most: int
    body: Callable[[int], Any]
    fields: tuple[tuple[str, str], ...] = ()


_BAD: Final = "!"
"""A name that no topic and no group may have, so that the request changes nothing."""
_QUEUE: Final = {"brokerName": "b", "queueId": 0, "topic": "t"}
_BROKER: Final = (
    ("brokerName", "b"), ("brokerAddr", "10.0.0.9:1"), ("clusterName", "c"), ("haServerAddr", ""),
    ("brokerId", "0"),
)  # fmt: skip
_BROKER_LEFT: Final = tuple((name, value or "-") for name, value in _BROKER)
_SUBJECT: Final = (("subject", "User:u"),)


def _table(count: int, value: Any) -> dict[str, Any]:
    return {f"k{number}": value for number in range(count)}


def _consumer(**more: Any) -> dict[str, Any]:
    return {"clientID": "c", "consumerDataSet": [{"groupName": "c", **more}]}


def _subscribed(**more: Any) -> dict[str, Any]:
    return _consumer(subscriptionDataSet=[{"topic": "t", **more}])


def _topic(**more: Any) -> dict[str, Any]:
    return {"topicConfigList": [{"topicName": _BAD, **more}]}


def _group(**more: Any) -> dict[str, Any]:
    return {"groupName": _BAD, **more}


def _route(**more: Any) -> dict[str, Any]:
    return {"queueDatas": [], "brokerDatas": [], **more}


def _registration(topics: int, servers: int) -> dict[str, Any]:
    table = {f"k{number}": {"topicName": f"k{number}"} for number in range(topics)}
    wrapper = {"topicConfigTable": table, "dataVersion": {"timestamp": 7, "counter": 1}}
    return {"topicConfigSerializeWrapper": wrapper, "filterServerList": ["x"] * servers}


def _policies(policies: int = 1, entries: int = 1, **more: Any) -> dict[str, Any]:
    entry = {"resource": "Topic:t", "actions": ["Pub"], "decision": "Allow", **more}
    return {"subject": "User:u", "policies": [{"entries": [entry] * entries}] * policies}


def _nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return {"a": value}


_GROUP: Final = "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP"
_TOPIC_ROUTE: Final = (("topic", "t"),)


def _of_brokers() -> Iterator[_Case]:
    beat_, lock, topics = "HEART_BEAT", "LOCK_BATCH_MQ", "UPDATE_AND_CREATE_TOPIC_LIST"
    yield from (
        _Case(beat_, _GROUPS, lambda n: {"clientID": "c", "producerDataSet": [{"groupName": "p"}] * n}),
        _Case(beat_, _GROUPS, lambda n: {"clientID": "c", "consumerDataSet": [{"groupName": "c"}] * n}),
        _Case(beat_, _MANY, lambda n: _consumer(subscriptionDataSet=[{"topic": "t"}] * n)),
        _Case(beat_, _TAGS, lambda n: _subscribed(tagsSet=["a"] * n)),
        _Case(beat_, _TAGS, lambda n: _subscribed(codeSet=[1] * n)),
        _Case(beat_, _LIST, lambda n: _subscribed(subString="a" * n)),
        _Case(beat_, _NAME, lambda n: _subscribed(expressionType="a" * n)),
        _Case(beat_, _NAME, lambda n: {"clientID": "c" * n}),
        _Case(beat_, _NAME, lambda n: {"clientID": "c", "producerDataSet": [{"groupName": "p" * n}]}),
        _Case(lock, _MANY, lambda n: {"clientId": "c", "consumerGroup": "c", "mqSet": [_QUEUE] * n}),
        _Case("UN" + lock, _MANY, lambda n: {"clientId": "c", "consumerGroup": "c", "mqSet": [_QUEUE] * n}),
        _Case(lock, _NAME, lambda n: {"clientId": "c" * n, "consumerGroup": "c"}),
        _Case(topics, _MANY, lambda n: {"topicConfigList": [{"topicName": _BAD}] * n}),
        _Case(topics, _FEW, lambda n: _topic(attributes=_table(n, "v"))),
        _Case(topics, _LIST, lambda n: _topic(attributes={"k": "v" * n})),
        _Case(_GROUP + "_LIST", _MANY, lambda n: {"groupConfigList": [{"groupName": _BAD}] * n}),
        _Case(_GROUP, _FEW, lambda n: _group(attributes=_table(n, "v"))),
        _Case(_GROUP, _FEW, lambda n: _group(groupRetryPolicy=_table(n, 1))),
        _Case(_GROUP, _MANY, lambda n: _group(subscriptionDataSet=[{}] * n)),
        _Case(_GROUP, _FEW, lambda n: _group(subscriptionDataSet=[_table(n, 1)])),
        _Case("AUTH_CREATE_ACL", _FEW, lambda n: _policies(policies=n), _SUBJECT),
        _Case("AUTH_CREATE_ACL", _FEW, lambda n: _policies(entries=n), _SUBJECT),
        _Case("AUTH_CREATE_ACL", _FEW, lambda n: _policies(actions=["Pub"] * n), _SUBJECT),
        _Case("AUTH_CREATE_ACL", _FEW, lambda n: _policies(sourceIps=["1.1.1.1"] * n), _SUBJECT),
        _Case("AUTH_CREATE_USER", _NAME, lambda n: {"username": "u", "password": "p" * n},
              (("username", "u"),)),
    )  # fmt: skip


def _of_name_servers() -> Iterator[_Case]:
    queue = {"brokerName": "b", "perm": 6, "readQueueNums": 1, "writeQueueNums": 1}
    broker = {"brokerName": "b", "cluster": "c", "brokerAddrs": {}}
    name = "REGISTER_TOPIC_IN_NAMESRV"
    yield from (
        _Case(name, _MANY, lambda n: _route(queueDatas=[queue] * n), _TOPIC_ROUTE),
        _Case(name, _MANY, lambda n: _route(brokerDatas=[broker] * n), _TOPIC_ROUTE),
        _Case(name, _FEW, lambda n: _route(brokerDatas=[
            broker | {"brokerAddrs": {str(at): "x" for at in range(n)}}]), _TOPIC_ROUTE),
        _Case(name, _MANY, lambda n: _route(filterServerTable=_table(n, None)), _TOPIC_ROUTE),
        _Case(name, _FEW, lambda n: _route(filterServerTable={"k": ["x"] * n}), _TOPIC_ROUTE),
        _Case("REGISTER_BROKER", _TOPICS, lambda n: _registration(n, 101), _BROKER_LEFT),
        _Case("REGISTER_BROKER", _FEW, lambda n: _registration(1, n), _BROKER_LEFT),
    )  # fmt: skip


async def list_limits(site: Site) -> None:
    site.rule = chapters.OPERATION_HEADERS
    network = site.cluster.internet.machine(HOST)
    broker = await RawClient(site.broker).open(network)
    names = await RawClient(site.name_server).open(network)
    for line, cases in ((broker, _of_brokers()), (names, _of_name_servers())):
        for case in cases:
            for count in (case.most, case.most + 1):
                body = json.dumps(case.body(count), separators=(",", ":")).encode()
                answer = await line.request(CODES[case.request], dict(case.fields), body)
                text = f"of length <= {case.most}"
                what = f"whether {case.request} refuses {count} in {body[:60]!r}"
                is_refused = answer.code == 1 and text in (answer.remark or "")
                site.compare(what, count > case.most, is_refused, answer.remark)
                site.compare(f"an error in the server: {what}", False, answer.is_own_error, answer.remark)
    for levels in (_NESTING - 1, _NESTING):
        for name in ("groupRetryPolicy", "subscriptionDataSet"):
            value = _nested(levels if name == "groupRetryPolicy" else levels - 1)
            body = json.dumps(_group(**{name: value if name == "groupRetryPolicy" else [value]})).encode()
            answer = await broker.request(CODES[_GROUP], {}, body)
            site.compare(
                f"whether {name} may have {levels + 1} levels", levels >= _NESTING,
                f"nested more than {_NESTING} levels" in (answer.remark or ""), answer.remark,
            )  # fmt: skip
    await _constants(site)


async def _constants(site: Site) -> None:
    """A constant may be sent as its ordinal, as C++ clients do; it is shown as its name."""
    await make_group(site, "g")
    line = await site.client("constants")
    for name, values in _CONSTANTS.items():
        for given in (*range(-1, len(values) + 1), *values, "SOMETHING", ""):
            is_known = given in values or given in range(len(values))
            await beat(
                site,
                "m@1",
                "g",
                [subscription("t")],
                by=line,
                expects=None if is_known else 1,
                **{name: given},
            )
            if is_known:
                answer = await site.ask("GET_CONSUMER_CONNECTION_LIST", consumerGroup="g")
                expected = values[given] if isinstance(given, int) else given
                site.compare(f"{name} after {given!r}", expected, json.loads(answer.body)[name])
                await site.ask("UNREGISTER_CLIENT", by=line, clientID="m@1", consumerGroup="g")


LIST_LIMITS: Final = Inspection("limits of lists", list_limits)
