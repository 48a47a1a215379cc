"""Operations of the name server: routes, registrations, permissions, key-value configuration."""

from typing import Final

from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.fields import fields
from mqproof.conformance.wire.model import Expect, Kind, Operation, Server, Since

_NS: Final = Server.NAME_SERVER
_SOURCE: Final = chapters.NAME_SERVER
_BROKER: Final = """
    brokerName  S! $ns_broker
    brokerAddr  S! $ns_address
    clusterName S! $ns_cluster
"""
_TOPIC: Final = (
    '"${{ns_topic}}{0}":{{"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG",'
    '"topicName":"${{ns_topic}}{0}","topicSysFlag":{1},"writeQueueNums":4}}'
)
_TABLE: Final = ",".join((_TOPIC.format("", 0), _TOPIC.format("_unit", 1), _TOPIC.format("_sub", 2)))
_BODY: Final = (
    '{"filterServerList":[],"topicConfigSerializeWrapper":{"dataVersion":{"counter":1,"timestamp":$now},'
    '"topicConfigTable":{' + _TABLE + "}}}"
)
_TOPICS: Final = '"topicList":['

REGISTER: Final = Operation(
    103, "REGISTER_BROKER", "register-broker", _NS, _SOURCE,
    fields("""
        brokerName             S! ${ns_broker}_too
        brokerAddr             S! 127.0.0.1:3
        clusterName            S! $ns_cluster
        haServerAddr           S! 127.0.0.1:1
        brokerId               L! 0
        compressed             B? false
        bodyCrc32              I? 0
        heartbeatTimeoutMillis L?5
        enableActingMaster     B?5
    """),
    body=_BODY,
)  # fmt: skip
UNREGISTER: Final = Operation(
    104, "UNREGISTER_BROKER", "unregister-broker", _NS, _SOURCE,
    fields("""
        brokerName  S! ${ns_broker}_gone
        brokerAddr  S! 127.0.0.1:2
        clusterName S! $ns_cluster
        brokerId    L! 0
    """),
)  # fmt: skip
ROUTE: Final = Operation(
    105, "GET_ROUTEINFO_BY_TOPIC", "route", _NS, _SOURCE,
    fields("""
        topic                  S! $ns_topic
        acceptStandardJsonOnly B?
    """),
    expect=Expect(
        has=('"brokerDatas":[{', '"queueDatas":[{', '"brokerName":"$ns_broker"', '"0":"$ns_address"')
    ),
)  # fmt: skip
CLUSTER_INFO: Final = Operation(
    106, "GET_BROKER_CLUSTER_INFO", "cluster-info", _NS, _SOURCE,
    expect=Expect(has=('"brokerAddrTable":{', '"clusterAddrTable":{', '"$ns_address"')),
)  # fmt: skip
DATA_VERSION: Final = Operation(
    322, "QUERY_DATA_VERSION", "data-version", _NS, _SOURCE, fields(_BROKER + "brokerId L! 0"),
    body='{"counter":1,"timestamp":$now}', expect=Expect(fields={"changed": Kind.BOOL}),
)  # fmt: skip
MEMBER_GROUP: Final = Operation(
    901, "GET_BROKER_MEMBER_GROUP", "member-group", _NS, _SOURCE,
    fields("""
        clusterName S! $ns_cluster
        brokerName  S! $ns_broker
    """),
    expect=Expect(has=('"brokerMemberGroup":{', "$ns_address")), since=Since.V5,
)  # fmt: skip
BROKER_HEARTBEAT: Final = Operation(
    904, "BROKER_HEARTBEAT", "broker-heartbeat", _NS, _SOURCE,
    fields("""
        clusterName            S! $ns_cluster
        brokerAddr             S! $ns_address
        brokerName             S! $ns_broker
        brokerId               L?
        epoch                  I?
        maxOffset              L?
        confirmOffset          L?
        heartbeatTimeoutMills  L?
        electionPriority       I?
    """),
    since=Since.V5,
)  # fmt: skip
TOPICS: Final = Operation(
    206, "GET_ALL_TOPIC_LIST_FROM_NAMESERVER", "topics", _NS, _SOURCE,
    expect=Expect(has=(_TOPICS, '"$ns_topic"')),
)  # fmt: skip
TOPICS_OF_CLUSTER: Final = Operation(
    224, "GET_TOPICS_BY_CLUSTER", "topics-of-cluster", _NS, _SOURCE, fields("cluster S! $ns_cluster"),
    expect=Expect(has=(_TOPICS, '"$ns_topic"')),
)  # fmt: skip
SYSTEM_TOPICS: Final = Operation(
    304, "GET_SYSTEM_TOPIC_LIST_FROM_NS", "system-topics-of-name-server", _NS, _SOURCE,
    expect=Expect(has=(_TOPICS, '"$ns_cluster"', '"$ns_broker"')),
)  # fmt: skip
UNIT_TOPICS: Final = Operation(
    311, "GET_UNIT_TOPIC_LIST", "unit-topics", _NS, _SOURCE, expect=Expect(has=(_TOPICS, "${ns_topic}_unit"))
)
UNIT_SUB_TOPICS: Final = Operation(
    312, "GET_HAS_UNIT_SUB_TOPIC_LIST", "unit-sub-topics", _NS, _SOURCE,
    expect=Expect(has=(_TOPICS, "${ns_topic}_sub")),
)  # fmt: skip
UNIT_SUB_UNUNIT_TOPICS: Final = Operation(
    313, "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST", "unit-sub-ununit-topics", _NS, _SOURCE,
    expect=Expect(has=(_TOPICS, "${ns_topic}_sub"), lacks=("${ns_topic}_unit",)),
)  # fmt: skip
WIPE: Final = Operation(
    205, "WIPE_WRITE_PERM_OF_BROKER", "wipe-write-perm", _NS, _SOURCE, fields("brokerName S! $ns_broker"),
    expect=Expect(fields={"wipeTopicCount": Kind.INT}),
)  # fmt: skip
ADD: Final = Operation(
    327, "ADD_WRITE_PERM_OF_BROKER", "add-write-perm", _NS, _SOURCE, fields("brokerName S! $ns_broker"),
    expect=Expect(fields={"addTopicCount": Kind.INT}),
)  # fmt: skip
DELETE_TOPIC: Final = Operation(
    216, "DELETE_TOPIC_IN_NAMESRV", "delete-topic-in-name-server", _NS, _SOURCE,
    fields("""
        topic       S! $gone
        clusterName S?
    """),
)  # fmt: skip
REGISTER_TOPIC: Final = Operation(
    217, "REGISTER_TOPIC_IN_NAMESRV", "register-topic", _NS, _SOURCE, fields("topic S! $scratch"),
    body='{"brokerDatas":[],"filterServerTable":{},"queueDatas":[{"brokerName":"$ns_broker","perm":6,'
    '"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}',
    since=Since.V5,
)  # fmt: skip
PUT_KV: Final = Operation(
    100, "PUT_KV_CONFIG", "put-kv", _NS, _SOURCE,
    fields("""
        namespace S! $scratch
        key       S! wire
        value     S! 1
    """),
)  # fmt: skip
GET_KV: Final = Operation(
    101, "GET_KV_CONFIG", "get-kv", _NS, _SOURCE,
    fields("""
        namespace S! $kv_namespace
        key       S! wire
    """),
    expect=Expect(values={"value": "kept"}),
)  # fmt: skip
DELETE_KV: Final = Operation(
    102, "DELETE_KV_CONFIG", "delete-kv", _NS, _SOURCE,
    fields("""
        namespace S! $scratch
        key       S! wire
    """),
)  # fmt: skip
KV_LIST: Final = Operation(
    219, "GET_KVLIST_BY_NAMESPACE", "kv-list", _NS, _SOURCE, fields("namespace S! $kv_namespace"),
    expect=Expect(has=('"table":{', '"wire":"kept"')),
)  # fmt: skip
UPDATE_CONFIG: Final = Operation(
    318, "UPDATE_NAMESRV_CONFIG", "update-name-server-config", _NS, _SOURCE, body="wireUnknownKey=1\n"
)
CONFIG: Final = Operation(
    319, "GET_NAMESRV_CONFIG", "name-server-config", _NS, _SOURCE,
    expect=Expect(has=("listenPort=", "kvConfigPath=")),
)  # fmt: skip

# Registrations come last: 5.5.0 does not recover from one without a broker name. Afterwards it truncates the
# list of GET_SYSTEM_TOPIC_LIST_FROM_NS at that broker.
OPERATIONS: Final = (
    ROUTE, CLUSTER_INFO, DATA_VERSION, MEMBER_GROUP, BROKER_HEARTBEAT, TOPICS, TOPICS_OF_CLUSTER,
    SYSTEM_TOPICS, UNIT_TOPICS, UNIT_SUB_TOPICS, UNIT_SUB_UNUNIT_TOPICS, WIPE, ADD, DELETE_TOPIC,
    REGISTER_TOPIC, PUT_KV, GET_KV, DELETE_KV, KV_LIST, UPDATE_CONFIG, CONFIG, REGISTER, UNREGISTER,
)  # fmt: skip
