"""Operations on topics, groups and the configuration of a broker."""

from typing import Final

from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.fields import fields
from mqproof.conformance.wire.model import Expect, Kind, Operation, Server, Since, Strength

_SOURCE: Final = chapters.ADMINISTRATION_OF_A_BROKER
_TOPIC: Final = (
    '{"order":false,"perm":6,"readQueueNums":2,"topicFilterType":"SINGLE_TAG","topicName":"$scratch",'
    '"topicSysFlag":0,"writeQueueNums":2}'
)
_GROUP: Final = (
    '{"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,'
    '"groupName":"$scratch","notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,'
    '"whichBrokerWhenConsumeSlowly":1}'
)

CREATE_TOPIC: Final = Operation(
    17,
    "UPDATE_AND_CREATE_TOPIC",
    "create-topic",
    Server.BROKER,
    _SOURCE,
    fields("""
        topic           S! $scratch
        defaultTopic    S! TBW102
        readQueueNums   I! 2
        writeQueueNums  I! 2
        perm            I! 6
        topicFilterType S! SINGLE_TAG
        topicSysFlag    I? 0
        order           B! false
        attributes      S?5
        force           B?5
    """),
)
CREATE_TOPICS: Final = Operation(
    18,
    "UPDATE_AND_CREATE_TOPIC_LIST",
    "create-topics",
    Server.BROKER,
    chapters.OPERATIONS_OF_5X,
    body='{"topicConfigList":[' + _TOPIC + "]}",
    since=Since.V5,
)
DELETE_TOPIC: Final = Operation(
    215, "DELETE_TOPIC_IN_BROKER", "delete-topic", Server.BROKER, _SOURCE, fields("topic S! $gone")
)
ALL_TOPICS: Final = Operation(
    21,
    "GET_ALL_TOPIC_CONFIG",
    "all-topics",
    Server.BROKER,
    _SOURCE,
    expect=Expect(has=('"dataVersion":{', '"topicConfigTable":{', '"$topic":{')),
)
TOPIC_CONFIG: Final = Operation(
    351,
    "GET_TOPIC_CONFIG",
    "topic-config",
    Server.BROKER,
    _SOURCE,
    fields("""
        topic S! $topic
        lo    B?
    """),
    expect=Expect(has=('"topicName":"$topic"', '"writeQueueNums":4')),
    since=Since.V5,
)
SYSTEM_TOPICS: Final = Operation(
    305,
    "GET_SYSTEM_TOPIC_LIST_FROM_BROKER",
    "system-topics",
    Server.BROKER,
    _SOURCE,
    expect=Expect(has=('"topicList":[', '"SELF_TEST_TOPIC"')),
)
CREATE_GROUP: Final = Operation(
    200, "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", "create-group", Server.BROKER, _SOURCE, body=_GROUP
)
CREATE_GROUPS: Final = Operation(
    225,
    "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST",
    "create-groups",
    Server.BROKER,
    chapters.OPERATIONS_OF_5X,
    body='{"groupConfigList":[' + _GROUP + "]}",
    since=Since.V5,
)
# With cleanOffset: without it 5.5.0 answers SUCCESS and keeps the group.
DELETE_GROUP: Final = Operation(
    207,
    "DELETE_SUBSCRIPTIONGROUP",
    "delete-group",
    Server.BROKER,
    _SOURCE,
    fields("""
        groupName    S! $gone
        removeOffset B? true
        cleanOffset  B?5 true
    """),
)
ALL_GROUPS: Final = Operation(
    201,
    "GET_ALL_SUBSCRIPTIONGROUP_CONFIG",
    "all-groups",
    Server.BROKER,
    _SOURCE,
    expect=Expect(has=('"dataVersion":{', '"subscriptionGroupTable":{', '"$group":{')),
)
GROUP_CONFIG: Final = Operation(
    352,
    "GET_SUBSCRIPTIONGROUP_CONFIG",
    "group-config",
    Server.BROKER,
    _SOURCE,
    fields("group S! $group"),
    expect=Expect(has=('"groupName":"$group"',)),
    since=Since.V5,
)
GROUP_FORBIDDEN: Final = Operation(
    353,
    "UPDATE_AND_GET_GROUP_FORBIDDEN",
    "group-forbidden",
    Server.BROKER,
    chapters.OPERATIONS_OF_5X,
    fields("""
        group    S! $group
        topic    S! $topic
        readable B?
    """),
    expect=Expect(has=('"group":"$group"', '"readable":true', '"topic":"$topic"')),
    since=Since.V5,
)
UPDATE_CONFIG: Final = Operation(
    25, "UPDATE_BROKER_CONFIG", "update-broker-config", Server.BROKER, _SOURCE, body="wireUnknownKey=1\n"
)
BROKER_CONFIG: Final = Operation(
    26,
    "GET_BROKER_CONFIG",
    "broker-config",
    Server.BROKER,
    _SOURCE,
    expect=Expect(
        fields={"version": Kind.TEXT}, has=("brokerName=$broker\n", "brokerClusterName=$cluster\n")
    ),
)
RUNTIME_INFO: Final = Operation(
    28,
    "GET_BROKER_RUNTIME_INFO",
    "runtime-info",
    Server.BROKER,
    _SOURCE,
    expect=Expect(has=('"table":{', '"brokerVersionDesc":"', '"putTps":"', '"commitLogMaxOffset":"')),
    cut_step=8,
)
CLEAN_QUEUES: Final = Operation(306, "CLEAN_EXPIRED_CONSUMEQUEUE", "clean-queues", Server.BROKER, _SOURCE)
CLEAN_TOPICS: Final = Operation(316, "CLEAN_UNUSED_TOPIC", "clean-topics", Server.BROKER, _SOURCE)
DELETE_LOG: Final = Operation(329, "DELETE_EXPIRED_COMMITLOG", "delete-log", Server.BROKER, _SOURCE)

_ACL: Final = chapters.ACCESS_CONTROL
ACL_OPERATIONS: Final = (
    Operation(
        50,
        "UPDATE_AND_CREATE_ACL_CONFIG",
        "acl-create",
        Server.BROKER,
        _ACL,
        fields("""
            accessKey          S! wireaccess
            secretKey          S! wiresecret
            whiteRemoteAddress S?
            admin              B? false
            defaultTopicPerm   S? DENY
            defaultGroupPerm   S? DENY
            topicPerms         S?
            groupPerms         S?
        """),
        expect=Expect(codes=()),
        strength=Strength.MAY,
    ),
    Operation(
        51,
        "DELETE_ACL_CONFIG",
        "acl-delete",
        Server.BROKER,
        _ACL,
        fields("accessKey S! wireaccess"),
        expect=Expect(codes=()),
        strength=Strength.MAY,
    ),
    Operation(
        52,
        "GET_BROKER_CLUSTER_ACL_INFO",
        "acl-info",
        Server.BROKER,
        _ACL,
        expect=Expect(codes=()),
        strength=Strength.MAY,
    ),
    Operation(
        53,
        "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG",
        "acl-white",
        Server.BROKER,
        _ACL,
        fields("""
            globalWhiteAddrs S! 10.0.0.1
            aclFileFullPath  S?
        """),
        expect=Expect(codes=()),
        strength=Strength.MAY,
    ),
)
"""Operations of 4.9 brokers with access control; the answers of other brokers are only reported."""

OPERATIONS: Final = (
    CREATE_TOPIC,
    CREATE_TOPICS,
    DELETE_TOPIC,
    ALL_TOPICS,
    TOPIC_CONFIG,
    SYSTEM_TOPICS,
    CREATE_GROUP,
    CREATE_GROUPS,
    DELETE_GROUP,
    ALL_GROUPS,
    GROUP_CONFIG,
    GROUP_FORBIDDEN,
    UPDATE_CONFIG,
    BROKER_CONFIG,
    RUNTIME_INFO,
    CLEAN_QUEUES,
    CLEAN_TOPICS,
    DELETE_LOG,
    *ACL_OPERATIONS,
)
