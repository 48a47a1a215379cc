"""Rules about routes while brokers register and unregister, and about key-value configuration."""

from dataclasses import replace
from typing import Final

from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.model import Call, Expect, Since, Strength
from mqproof.conformance.wire.operations.name_server import (
    ADD,
    CLUSTER_INFO,
    DATA_VERSION,
    DELETE_KV,
    DELETE_TOPIC,
    GET_KV,
    KV_LIST,
    MEMBER_GROUP,
    PUT_KV,
    REGISTER,
    REGISTER_TOPIC,
    ROUTE,
    TOPICS_OF_CLUSTER,
    UNREGISTER,
    UPDATE_CONFIG,
    WIPE,
)
from mqproof.conformance.wire.requests import valid
from mqproof.conformance.wire.semantics.rule import Rule, call, code, eventually

_BROKER: Final = {
    "brokerName": "${ns_broker}_$case",
    "brokerAddr": "127.0.0.2:$case",
    "clusterName": "${ns_cluster}_$case",
}
_SLAVE: Final = {**_BROKER, "brokerId": "1", "brokerAddr": "127.0.0.3:$case"}
_TOPIC: Final = "${ns_topic}_${case}"
_BODY: Final = str(REGISTER.body).replace("${ns_topic}", _TOPIC)
_OLD: Final = 317


def _registered(**fields: str) -> Call:
    """Register a broker of the case's own, with its own topics; it disappears with the connection."""
    return Call(valid(REGISTER, _BODY, **{**_BROKER, **fields}))


def _routed(*texts: str) -> Call:
    return call(ROUTE, Expect(has=texts), topic=_TOPIC)


_NO_ROUTE: Final = call(ROUTE, code(17), topic=_TOPIC)

RULES: Final = (
    Rule(ROUTE, 400, "of an unknown topic is refused", (call(ROUTE, code(17), topic="$gone"),)),
    Rule(
        ROUTE,
        401,
        "has quoted broker ids for clients since 4.9.4",
        (call(ROUTE, Expect(has=('"brokerAddrs":{"0":"$ns_address"}',))),),
        source=chapters.JSON_BODIES,
    ),
    Rule(
        ROUTE,
        402,
        "has unquoted broker ids for older clients",
        (Call(replace(valid(ROUTE), version=_OLD), Expect(has=('"brokerAddrs":{0:"$ns_address"}',))),),
        source=chapters.JSON_BODIES,
    ),
    Rule(
        ROUTE,
        403,
        "has quoted broker ids for an older client that requests them",
        (
            Call(
                replace(valid(ROUTE, acceptStandardJsonOnly="true"), version=_OLD),
                Expect(has=('"brokerAddrs":{"0":"$ns_address"}',)),
            ),
        ),
        source=chapters.JSON_BODIES,
    ),
    Rule(
        REGISTER,
        400,
        "creates a route",
        (_registered(), _routed('"${ns_broker}_$case"', '"writeQueueNums":4')),
    ),
    Rule(
        REGISTER,
        401,
        "with a wrong CRC is refused",
        (Call(valid(REGISTER, _BODY, bodyCrc32="1", **_BROKER), code(1)),),
    ),
    Rule(
        REGISTER,
        402,
        "of a slave is answered with its master",
        (
            _registered(),
            Call(
                valid(REGISTER, _BODY, **_SLAVE),
                Expect(values={"masterAddr": "127.0.0.2:$case", "haServerAddr": "127.0.0.1:1"}),
            ),
        ),
    ),
    Rule(
        REGISTER,
        403,
        "of a slave is in the route with its master",
        (
            _registered(),
            _registered(brokerId="1", brokerAddr="127.0.0.3:$case"),
            _routed('"0":"127.0.0.2:$case"', '"1":"127.0.0.3:$case"'),
        ),
    ),
    Rule(
        REGISTER,
        404,
        "is then in the cluster",
        (_registered(), call(CLUSTER_INFO, Expect(has=('"${ns_cluster}_$case":["${ns_broker}_$case"]',)))),
    ),
    Rule(
        REGISTER, 405, "without a body creates no topics", (Call(valid(REGISTER, "", **_BROKER)), _NO_ROUTE)
    ),
    Rule(
        UNREGISTER,
        400,
        "ends the route",
        (_registered(), call(UNREGISTER, None, **_BROKER), eventually(_NO_ROUTE)),
    ),
    Rule(
        UNREGISTER,
        401,
        "of the slave keeps the master",
        (
            _registered(),
            _registered(brokerId="1", brokerAddr="127.0.0.3:$case"),
            call(UNREGISTER, None, **_SLAVE),
            _routed('"0":"127.0.0.2:$case"'),
        ),
    ),
    Rule(
        DATA_VERSION,
        400,
        "of an unknown broker reports a change",
        (call(DATA_VERSION, Expect(values={"changed": "true"}), **_BROKER),),
    ),
    Rule(
        DATA_VERSION,
        401,
        "of a registered broker reports no change",
        (_registered(), call(DATA_VERSION, Expect(values={"changed": "false"}), **_BROKER)),
    ),
    Rule(
        DATA_VERSION,
        402,
        "with another counter reports a change",
        (
            _registered(),
            Call(
                valid(DATA_VERSION, '{"counter":2,"timestamp":$now}', **_BROKER),
                Expect(values={"changed": "true"}),
            ),
        ),
    ),
    Rule(
        WIPE,
        400,
        "removes the write permission",
        (
            _registered(),
            call(WIPE, Expect(values={"wipeTopicCount": "3"}), brokerName=_BROKER["brokerName"]),
            _routed('"perm":4'),
        ),
    ),
    Rule(
        WIPE,
        401,
        "of an unknown broker counts none",
        (call(WIPE, Expect(values={"wipeTopicCount": "0"}), brokerName="$gone"),),
    ),
    Rule(
        ADD,
        400,
        "restores the write permission",
        (
            _registered(),
            call(WIPE, brokerName=_BROKER["brokerName"]),
            call(ADD, Expect(values={"addTopicCount": "3"}), brokerName=_BROKER["brokerName"]),
            _routed('"perm":6'),
        ),
    ),
    Rule(DELETE_TOPIC, 400, "ends the route", (_registered(), call(DELETE_TOPIC, topic=_TOPIC), _NO_ROUTE)),
    Rule(
        DELETE_TOPIC,
        401,
        "in another cluster keeps the route",
        (_registered(), call(DELETE_TOPIC, topic=_TOPIC, clusterName="$gone"), _routed('"perm":6')),
        strength=Strength.SHOULD,
    ),
    Rule(
        REGISTER_TOPIC,
        400,
        "creates a route at a known broker",
        (
            call(REGISTER_TOPIC, topic="$gone"),
            call(ROUTE, Expect(has=('"$ns_broker"', '"$ns_address"')), topic="$gone"),
        ),
        Since.V5,
    ),
    Rule(
        TOPICS_OF_CLUSTER,
        400,
        "of an unknown cluster is empty",
        (call(TOPICS_OF_CLUSTER, Expect(has=('"topicList":[]',)), cluster="$gone"),),
    ),
    Rule(
        MEMBER_GROUP,
        400,
        "of an unknown broker is answered",
        (call(MEMBER_GROUP, Expect(codes=()), brokerName="$gone"),),
        Since.V5,
    ),
    Rule(
        PUT_KV,
        400,
        "can then be read",
        (
            call(PUT_KV, namespace="$gone", value="wire-$case"),
            call(GET_KV, Expect(values={"value": "wire-$case"}), namespace="$gone"),
        ),
    ),
    Rule(
        PUT_KV,
        401,
        "overwrites",
        (
            call(PUT_KV, namespace="$gone", value="1"),
            call(PUT_KV, namespace="$gone", value="2"),
            call(GET_KV, Expect(values={"value": "2"}), namespace="$gone"),
        ),
    ),
    Rule(GET_KV, 400, "of an unknown key is not found", (call(GET_KV, code(22), key="$gone"),)),
    Rule(GET_KV, 401, "of an unknown namespace is not found", (call(GET_KV, code(22), namespace="$gone"),)),
    Rule(
        DELETE_KV,
        400,
        "is then not found",
        (
            call(PUT_KV, namespace="$gone"),
            call(DELETE_KV, namespace="$gone"),
            call(GET_KV, code(22), namespace="$gone"),
        ),
    ),
    Rule(KV_LIST, 400, "of an unknown namespace is not found", (call(KV_LIST, code(22), namespace="$gone"),)),
    Rule(
        UPDATE_CONFIG,
        400,
        "of a path of the configuration is not allowed",
        (Call(valid(UPDATE_CONFIG, "kvConfigPath=/nowhere\n"), code(16)),),
        Since.V5,
    ),
)
