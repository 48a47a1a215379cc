"""Operations of clients: registration, queue locks, and requests to clients."""

from typing import Final

from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.fields import fields
from mqproof.conformance.wire.model import Call, Expect, Operation, Request, Server, Since

_SUBSCRIPTION: Final = (
    '{"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"*","subVersion":1,"tagsSet":[],'
    '"topic":"$topic"}'
)
_HEARTBEAT: Final = (
    '{"clientID":"$client","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",'
    '"consumeType":"CONSUME_PASSIVELY","groupName":"$live","messageModel":"CLUSTERING",'
    f'"subscriptionDataSet":[{_SUBSCRIPTION}],"unitMode":false}}],"producerDataSet":[{{"groupName":"$live"}}]}}'
)
_QUEUES: Final = (
    '{"clientId":"$client","consumerGroup":"$live",'
    '"mqSet":[{"brokerName":"$broker","queueId":0,"topic":"$topic"}]}'
)

HEART_BEAT: Final = Operation(
    34, "HEART_BEAT", "heartbeat", Server.BROKER, chapters.CLIENT_REGISTRATION, body=_HEARTBEAT
)
BEATEN: Final = (Call(Request(HEART_BEAT.code, body=_HEARTBEAT)),)
"""Registers the connection's client as a consumer and a producer of the group `$live`."""

UNREGISTER: Final = Operation(
    35,
    "UNREGISTER_CLIENT",
    "unregister-client",
    Server.BROKER,
    chapters.CLIENT_REGISTRATION,
    fields("""
        clientID      S! $client
        producerGroup S? $live
        consumerGroup S? $live
    """),
)
CONSUMER_LIST: Final = Operation(
    38,
    "GET_CONSUMER_LIST_BY_GROUP",
    "consumer-list",
    Server.BROKER,
    chapters.CLIENT_REGISTRATION,
    fields("consumerGroup S! $live"),
    expect=Expect(has=('"consumerIdList":["$client"]',)),
    before=BEATEN,
)
CHECK_CLIENT: Final = Operation(
    46,
    "CHECK_CLIENT_CONFIG",
    "check-client",
    Server.BROKER,
    chapters.CLIENT_REGISTRATION,
    body='{"clientId":"$client","group":"$live","subscriptionData":' + _SUBSCRIPTION + "}",
)
LOCK: Final = Operation(
    41,
    "LOCK_BATCH_MQ",
    "lock",
    Server.BROKER,
    chapters.QUEUE_LOCKS,
    body=_QUEUES,
    expect=Expect(has=('"lockOKMQSet":[{', '"brokerName":"$broker"', '"queueId":0', '"topic":"$topic"')),
)
UNLOCK: Final = Operation(42, "UNLOCK_BATCH_MQ", "unlock", Server.BROKER, chapters.QUEUE_LOCKS, body=_QUEUES)
CONSUMER_CONNECTIONS: Final = Operation(
    203,
    "GET_CONSUMER_CONNECTION_LIST",
    "consumer-connections",
    Server.BROKER,
    chapters.CLIENTS_OF_A_BROKER,
    fields("consumerGroup S! $live"),
    expect=Expect(has=('"connectionSet":[{', '"clientId":"$client"', '"subscriptionTable":{')),
    before=BEATEN,
)
PRODUCER_CONNECTIONS: Final = Operation(
    204,
    "GET_PRODUCER_CONNECTION_LIST",
    "producer-connections",
    Server.BROKER,
    chapters.CLIENTS_OF_A_BROKER,
    fields("producerGroup S! $live"),
    expect=Expect(has=('"connectionSet":[{', '"clientId":"$client"')),
    before=BEATEN,
)
ALL_PRODUCERS: Final = Operation(
    328,
    "GET_ALL_PRODUCER_INFO",
    "all-producers",
    Server.BROKER,
    chapters.CLIENTS_OF_A_BROKER,
    expect=Expect(has=('"data":{', "$live")),
    before=BEATEN,
)
RUNNING_INFO: Final = Operation(
    307,
    "GET_CONSUMER_RUNNING_INFO",
    "running-info",
    Server.BROKER,
    chapters.ADMINISTRATION_OF_A_BROKER,
    fields("""
        consumerGroup S! $group
        clientId      S! absent
        jstackEnable  B? false
    """),
    expect=Expect(codes=(1,)),
)
CONSUME_DIRECTLY: Final = Operation(
    309,
    "CONSUME_MESSAGE_DIRECTLY",
    "consume-directly",
    Server.BROKER,
    chapters.ADMINISTRATION_OF_A_BROKER,
    fields("""
        consumerGroup S! $group
        clientId      S? absent
        msgId         S? $msg_id
        brokerName    S? $broker
        topic         S?5
        topicSysFlag  I?5
        groupSysFlag  I?5
    """),
    expect=Expect(codes=(1,)),
)
RESET_OFFSET: Final = Operation(
    222,
    "INVOKE_BROKER_TO_RESET_OFFSET",
    "reset-offset",
    Server.BROKER,
    chapters.ADMINISTRATION_OF_A_BROKER,
    fields("""
        topic     S! $other
        group     S! $group
        timestamp L! -1
        isForce   B! true
        queueId   I?5
        offset    L?5
    """),
    # 4.9 requires members and committed offsets, 5.x neither.
    expect=Expect(codes=(0, 1, 206)),
)
CONSUMER_STATUS: Final = Operation(
    223,
    "INVOKE_BROKER_TO_GET_CONSUMER_STATUS",
    "consumer-status",
    Server.BROKER,
    chapters.ADMINISTRATION_OF_A_BROKER,
    fields("""
        topic      S! $topic
        group      S! $group
        clientAddr S?
    """),
    expect=Expect(codes=(1, 206)),
)
QUERY_ASSIGNMENT: Final = Operation(
    400,
    "QUERY_ASSIGNMENT",
    "query-assignment",
    Server.BROKER,
    chapters.OPERATIONS_OF_5X,
    body='{"clientId":"$client","consumerGroup":"$live","messageModel":"CLUSTERING","strategyName":"AVG",'
    '"topic":"$topic"}',
    expect=Expect(has=('"messageQueueAssignments":[',)),
    since=Since.V5,
    before=BEATEN,
)
SET_REQUEST_MODE: Final = Operation(
    401,
    "SET_MESSAGE_REQUEST_MODE",
    "set-request-mode",
    Server.BROKER,
    chapters.OPERATIONS_OF_5X,
    body='{"consumerGroup":"$live","mode":"PULL","popShareQueueNum":0,"topic":"$topic"}',
    since=Since.V5,
)

OPERATIONS: Final = (
    HEART_BEAT,
    UNREGISTER,
    CONSUMER_LIST,
    CHECK_CLIENT,
    LOCK,
    UNLOCK,
    CONSUMER_CONNECTIONS,
    PRODUCER_CONNECTIONS,
    ALL_PRODUCERS,
    RUNNING_INFO,
    CONSUME_DIRECTLY,
    RESET_OFFSET,
    CONSUMER_STATUS,
    QUERY_ASSIGNMENT,
    SET_REQUEST_MODE,
)
