"""The known request and response codes, in one table each, with number, name, meaning and retry rule.

See docs/reference/protocol/framing.md, "Request codes" and "Response codes". A number that is not in the
table is an unknown code. It is answered with REQUEST_CODE_NOT_SUPPORTED, or shown as its number.
"""

from enum import IntEnum, unique


@unique
class RequestCode(IntEnum):
    """Request codes. The comment says sender and receiver.

    C is a client, B a broker, N a name server, and F a filter server.
    """

    SEND_MESSAGE = 10  # C-B, long field names
    PULL_MESSAGE = 11  # C-B
    QUERY_MESSAGE = 12  # C-B, by key
    QUERY_CONSUMER_OFFSET = 14  # C-B
    UPDATE_CONSUMER_OFFSET = 15  # C-B, mostly one-way
    UPDATE_AND_CREATE_TOPIC = 17  # C-B
    UPDATE_AND_CREATE_TOPIC_LIST = 18  # C-B, 5.x
    GET_ALL_TOPIC_CONFIG = 21  # C-B, B-B
    UPDATE_BROKER_CONFIG = 25  # C-B
    GET_BROKER_CONFIG = 26  # C-B
    GET_BROKER_RUNTIME_INFO = 28  # C-B
    SEARCH_OFFSET_BY_TIMESTAMP = 29  # C-B
    GET_MAX_OFFSET = 30  # C-B
    GET_MIN_OFFSET = 31  # C-B
    GET_EARLIEST_MSG_STORETIME = 32  # C-B
    VIEW_MESSAGE_BY_ID = 33  # C-B
    HEART_BEAT = 34  # C-B
    UNREGISTER_CLIENT = 35  # C-B
    CONSUMER_SEND_MSG_BACK = 36  # C-B
    END_TRANSACTION = 37  # C-B, usually one-way
    CHECK_TRANSACTION_STATE = 39  # B-C, one-way
    GET_CONSUMER_LIST_BY_GROUP = 38  # C-B
    NOTIFY_CONSUMER_IDS_CHANGED = 40  # B-C, one-way
    LOCK_BATCH_MQ = 41  # C-B
    UNLOCK_BATCH_MQ = 42  # C-B
    GET_ALL_CONSUMER_OFFSET = 43  # B-B
    GET_ALL_DELAY_OFFSET = 45  # C-B, B-B
    CHECK_CLIENT_CONFIG = 46  # C-B
    UPDATE_AND_CREATE_ACL_CONFIG = 50  # C-B, 4.9
    DELETE_ACL_CONFIG = 51  # C-B, 4.9
    GET_BROKER_CLUSTER_ACL_INFO = 52  # C-B, 4.9
    UPDATE_GLOBAL_WHITE_ADDRS_CONFIG = 53  # C-B, 4.9
    PUT_KV_CONFIG = 100  # C-N
    GET_KV_CONFIG = 101  # C-N
    DELETE_KV_CONFIG = 102  # C-N
    REGISTER_BROKER = 103  # B-N
    UNREGISTER_BROKER = 104  # B-N
    GET_ROUTEINFO_BY_TOPIC = 105  # C-N
    GET_BROKER_CLUSTER_INFO = 106  # C-N
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP = 200  # C-B
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 201  # C-B, B-B
    GET_TOPIC_STATS_INFO = 202  # C-B
    GET_CONSUMER_CONNECTION_LIST = 203  # C-B
    GET_PRODUCER_CONNECTION_LIST = 204  # C-B
    WIPE_WRITE_PERM_OF_BROKER = 205  # C-N
    GET_ALL_TOPIC_LIST_FROM_NAMESERVER = 206  # C-N
    DELETE_SUBSCRIPTIONGROUP = 207  # C-B
    GET_CONSUME_STATS = 208  # C-B
    DELETE_TOPIC_IN_BROKER = 215  # C-B
    DELETE_TOPIC_IN_NAMESRV = 216  # C-N
    REGISTER_TOPIC_IN_NAMESRV = 217  # C-N, B-N, 5.x
    GET_KVLIST_BY_NAMESPACE = 219  # C-N
    RESET_CONSUMER_CLIENT_OFFSET = 220  # B-C, one-way
    GET_CONSUMER_STATUS_FROM_CLIENT = 221  # B-C
    INVOKE_BROKER_TO_RESET_OFFSET = 222  # C-B
    INVOKE_BROKER_TO_GET_CONSUMER_STATUS = 223  # C-B
    GET_TOPICS_BY_CLUSTER = 224  # C-N
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST = 225  # C-B, 5.x
    QUERY_TOPIC_CONSUME_BY_WHO = 300  # C-B
    REGISTER_FILTER_SERVER = 301  # F-B, F is a filter server
    REGISTER_MESSAGE_FILTER_CLASS = 302  # C-F
    QUERY_CONSUME_TIME_SPAN = 303  # C-B
    GET_SYSTEM_TOPIC_LIST_FROM_NS = 304  # C-N
    GET_SYSTEM_TOPIC_LIST_FROM_BROKER = 305  # C-B
    CLEAN_EXPIRED_CONSUMEQUEUE = 306  # C-B
    GET_CONSUMER_RUNNING_INFO = 307  # C-B-C
    QUERY_CORRECTION_OFFSET = 308  # C-B
    CONSUME_MESSAGE_DIRECTLY = 309  # C-B-C
    SEND_MESSAGE_V2 = 310  # C-B, one-letter field names
    GET_UNIT_TOPIC_LIST = 311  # C-N
    GET_HAS_UNIT_SUB_TOPIC_LIST = 312  # C-N
    GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST = 313  # C-N
    CLONE_GROUP_OFFSET = 314  # C-B
    VIEW_BROKER_STATS_DATA = 315  # C-B
    CLEAN_UNUSED_TOPIC = 316  # C-B
    GET_BROKER_CONSUME_STATS = 317  # C-B
    UPDATE_NAMESRV_CONFIG = 318  # C-N
    GET_NAMESRV_CONFIG = 319  # C-N
    SEND_BATCH_MESSAGE = 320  # C-B
    QUERY_CONSUME_QUEUE = 321  # C-B
    QUERY_DATA_VERSION = 322  # B-N
    SEND_REPLY_MESSAGE = 324  # C-B, long field names
    SEND_REPLY_MESSAGE_V2 = 325  # C-B, one-letter field names
    PUSH_REPLY_MESSAGE_TO_CLIENT = 326  # B-C
    ADD_WRITE_PERM_OF_BROKER = 327  # C-N
    GET_ALL_PRODUCER_INFO = 328  # C-B
    DELETE_EXPIRED_COMMITLOG = 329  # C-B
    QUERY_TOPICS_BY_CONSUMER = 343  # C-B, 5.x
    QUERY_SUBSCRIPTION_BY_CONSUMER = 345  # C-B, 5.x
    GET_TOPIC_CONFIG = 351  # C-B, 5.x
    GET_SUBSCRIPTIONGROUP_CONFIG = 352  # C-B, 5.x
    RESUME_CHECK_HALF_MESSAGE = 323  # C-B
    RECALL_MESSAGE = 370  # C-B, 5.3
    LITE_PULL_MESSAGE = 361  # C-B, the contract of PULL_MESSAGE
    SET_MESSAGE_REQUEST_MODE = 401  # C-B, 5.x
    GET_ALL_MESSAGE_REQUEST_MODE = 402  # B-B, 5.x
    GET_BROKER_MEMBER_GROUP = 901  # B-N, 5.x
    BROKER_HEARTBEAT = 904  # B-N, one-way
    GET_BROKER_HA_STATUS = 907  # C-B, 5.x
    AUTH_CREATE_USER = 3001  # C-B, 5.x
    AUTH_UPDATE_USER = 3002  # C-B, 5.x
    AUTH_DELETE_USER = 3003  # C-B, 5.x
    AUTH_GET_USER = 3004  # C-B, 5.x
    AUTH_LIST_USER = 3005  # C-B, 5.x
    AUTH_CREATE_ACL = 3006  # C-B, 5.x
    AUTH_UPDATE_ACL = 3007  # C-B, 5.x
    AUTH_DELETE_ACL = 3008  # C-B, 5.x
    AUTH_GET_ACL = 3009  # C-B, 5.x
    AUTH_LIST_ACL = 3010  # C-B, 5.x


@unique
class ResponseCode(IntEnum):
    """Response codes: the number, whether a synchronous send retries at another broker, and the meaning."""

    retriable: bool
    meaning: str

    def __new__(cls, number: int, retriable: bool, meaning: str) -> "ResponseCode":
        code = int.__new__(cls, number)
        code._value_ = number
        code.retriable = retriable
        code.meaning = meaning
        return code

    SUCCESS = 0, False, "success; SEND_OK for a send, FOUND for a pull"
    SYSTEM_ERROR = 1, True, "failed; the remark says why"
    SYSTEM_BUSY = 2, True, "flow control; the request was not executed"
    REQUEST_CODE_NOT_SUPPORTED = 3, False, "the server does not know the request code"
    FLUSH_DISK_TIMEOUT = 10, False, "stored, but not known to be on disk"
    SLAVE_NOT_AVAILABLE = 11, False, "stored, but no slave is close enough to wait for"
    FLUSH_SLAVE_TIMEOUT = 12, False, "stored, but no slave confirmed in time"
    MESSAGE_ILLEGAL = 13, False, "topic, properties or body are not acceptable"
    SERVICE_NOT_AVAILABLE = 14, True, "the store takes no writes"
    NO_PERMISSION = 16, True, "broker, topic or group does not allow it"
    TOPIC_NOT_EXIST = 17, True, "no such topic, and none was created"
    PULL_NOT_FOUND = 19, False, "nothing new in the queue"
    PULL_RETRY_IMMEDIATELY = 20, False, "nothing matched; pull again at the next offset"
    PULL_OFFSET_MOVED = 21, False, "the offset is outside the queue; take the one in the answer"
    QUERY_NOT_FOUND = 22, False, "no such offset"
    SUBSCRIPTION_PARSE_FAILED = 23, False, "the subscription expression does not parse"
    SUBSCRIPTION_NOT_EXIST = 24, False, "no heartbeat has subscribed this group to the topic"
    SUBSCRIPTION_NOT_LATEST = 25, False, "the broker's subscription is older than the request's"
    SUBSCRIPTION_GROUP_NOT_EXIST = 26, False, "no such group, and none was created"
    FILTER_DATA_NOT_EXIST = 27, False, "no heartbeat has registered an SQL92 expression of the group"
    FILTER_DATA_NOT_LATEST = 28, False, "the broker's SQL92 expression is older than the request's"
    ILLEGAL_OPERATION = 604, False, "no such message waits for its time, so it cannot be recalled"
    NO_BUYER_ID = 204, True, "of units that are not Apache's"
    NOT_IN_CURRENT_UNIT = 205, True, "of units that are not Apache's"
    CONSUMER_NOT_ONLINE = 206, False, "no such consumer is connected"
    CONSUME_MSG_TIMEOUT = 207, False, "the consumer that was asked did not answer in time"
    UPDATE_ACL_CONFIG_FAILED = 209, False, "4.9: an account was not changed"
    DELETE_ACL_CONFIG_FAILED = 210, False, "4.9: an account was not deleted"
    UPDATE_GLOBAL_WHITE_ADDRS_FAILED = 211, False, "4.9: the white list was not changed"
    FLOW_CONTROL = 215, False, "pull more slowly"
    GO_AWAY = 1500, True, "the server is about to stop"


def request_name(code: int) -> str:
    """Return the name of a request code, or its number if the name is not known."""
    try:
        return RequestCode(code).name
    except ValueError:
        return f"CODE_{code}"


def response_name(code: int) -> str:
    """Return the name of a response code, or its number if the name is not known."""
    try:
        return ResponseCode(code).name  # type: ignore[call-arg]  # by number, as with any enum
    except ValueError:
        return f"CODE_{code}"


def is_retriable(code: int) -> bool:
    """Return whether a synchronous send may try another broker after this code. Unknown codes are final."""
    return code in _RETRIABLE


_RETRIABLE = frozenset(code.value for code in ResponseCode if code.retriable)
