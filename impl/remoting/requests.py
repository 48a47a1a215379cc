"""The header and the body of each request code that a broker or a name server answers, with their limits.

The limits of the fields are declared in `headers.py` and `bodies.py`, and checked when they are read. This
table adds the size of each body. A body that a request does not use is dropped before the request is
processed, so that a request that waits does not hold it.
"""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from mqproof.impl.remoting import bodies
from mqproof.impl.remoting import headers as of
from mqproof.impl.remoting.channel import Channel, Handler, Reply
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.frame import FRAME_BYTES_MAX

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Form:
    """The content of a request. `body` is a JSON type, `str` for text, or `bytes` for messages."""

    header: type[of.Header] | None = None
    body: Any = None
    body_bytes_max: int = 0


_NOTHING: Final = Form()
_MESSAGES: Final = Form(of.SendRequest, bytes, FRAME_BYTES_MAX)
_QUEUE: Final = Form(of.QueueRequest)
_TOPIC: Final = Form(of.TopicRequest)
_GROUP: Final = Form(of.GroupRequest)
_PROPERTIES: Final = Form(None, str, MIB)
_LOCKS: Final = Form(None, bodies.QueueLocks, 4 * MIB)

FORMS: Final[dict[int, Form]] = {
    RequestCode.SEND_MESSAGE: _MESSAGES,
    RequestCode.SEND_MESSAGE_V2: _MESSAGES,
    RequestCode.SEND_BATCH_MESSAGE: _MESSAGES,
    RequestCode.SEND_REPLY_MESSAGE: _MESSAGES,
    RequestCode.SEND_REPLY_MESSAGE_V2: _MESSAGES,
    RequestCode.END_TRANSACTION: Form(of.EndTransactionRequest),
    RequestCode.RESUME_CHECK_HALF_MESSAGE: Form(of.ResumeCheckRequest),
    RequestCode.RECALL_MESSAGE: Form(of.RecallMessageRequest),
    RequestCode.CONSUMER_SEND_MSG_BACK: Form(of.SendBackRequest),
    RequestCode.PULL_MESSAGE: Form(of.PullRequest),
    RequestCode.LITE_PULL_MESSAGE: Form(of.PullRequest),
    RequestCode.QUERY_CONSUMER_OFFSET: Form(of.QueryOffsetRequest),
    RequestCode.UPDATE_CONSUMER_OFFSET: Form(of.UpdateOffsetRequest),
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: Form(of.SearchOffsetRequest),
    RequestCode.GET_MAX_OFFSET: _QUEUE,
    RequestCode.GET_MIN_OFFSET: _QUEUE,
    RequestCode.GET_EARLIEST_MSG_STORETIME: _QUEUE,
    RequestCode.QUERY_MESSAGE: Form(of.QueryMessageRequest),
    RequestCode.VIEW_MESSAGE_BY_ID: Form(of.ViewMessageRequest),
    RequestCode.GET_ALL_DELAY_OFFSET: _NOTHING,
    RequestCode.HEART_BEAT: Form(None, bodies.Heartbeat, MIB),
    RequestCode.UNREGISTER_CLIENT: Form(of.UnregisterClientRequest),
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: Form(of.ConsumerGroupRequest),
    RequestCode.LOCK_BATCH_MQ: _LOCKS,
    RequestCode.UNLOCK_BATCH_MQ: _LOCKS,
    RequestCode.CHECK_CLIENT_CONFIG: Form(None, bodies.ClientCheck, MIB),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: Form(of.ConsumerGroupRequest),
    RequestCode.GET_PRODUCER_CONNECTION_LIST: Form(of.ProducerGroupRequest),
    RequestCode.GET_ALL_PRODUCER_INFO: _NOTHING,
    RequestCode.UPDATE_AND_CREATE_TOPIC: Form(of.UpdateTopicRequest),
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: Form(None, bodies.TopicConfigList, 4 * MIB),
    RequestCode.DELETE_TOPIC_IN_BROKER: _TOPIC,
    RequestCode.GET_ALL_TOPIC_CONFIG: _NOTHING,
    RequestCode.GET_TOPIC_CONFIG: _TOPIC,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: _NOTHING,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: Form(None, bodies.SubscriptionGroup, MIB),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: Form(None, bodies.SubscriptionGroupList, 4 * MIB),
    RequestCode.DELETE_SUBSCRIPTIONGROUP: Form(of.DeleteGroupRequest),
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: _NOTHING,
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: _GROUP,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: Form(of.ResetOffsetRequest),
    RequestCode.CLONE_GROUP_OFFSET: Form(of.CloneOffsetRequest),
    RequestCode.GET_ALL_CONSUMER_OFFSET: _NOTHING,
    RequestCode.GET_CONSUME_STATS: Form(of.ConsumeStatsRequest),
    RequestCode.GET_TOPIC_STATS_INFO: _TOPIC,
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: _TOPIC,
    RequestCode.REGISTER_FILTER_SERVER: Form(of.RegisterFilterServerRequest),
    RequestCode.REGISTER_MESSAGE_FILTER_CLASS: Form(of.RegisterFunctionRequest, bytes, 4 * MIB),
    RequestCode.QUERY_CONSUME_TIME_SPAN: Form(of.TopicGroupRequest),
    RequestCode.GET_CONSUMER_RUNNING_INFO: Form(of.ConsumerRequest),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: Form(of.ConsumerRequest),
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: Form(of.ConsumerStatusRequest),
    RequestCode.QUERY_CONSUME_QUEUE: Form(of.QueueEntriesRequest),
    RequestCode.QUERY_TOPICS_BY_CONSUMER: _GROUP,
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: Form(of.GroupTopicRequest),
    RequestCode.QUERY_CORRECTION_OFFSET: Form(of.CorrectionRequest),
    RequestCode.GET_BROKER_CONSUME_STATS: Form(of.AllConsumeStatsRequest),
    RequestCode.VIEW_BROKER_STATS_DATA: Form(of.StatsRequest),
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: Form(of.AccountRequest),
    RequestCode.DELETE_ACL_CONFIG: Form(of.DeleteAccountRequest),
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: Form(of.WhiteAddressesRequest),
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO: _NOTHING,
    RequestCode.AUTH_CREATE_USER: Form(of.UserRequest, bodies.User, MIB),
    RequestCode.AUTH_UPDATE_USER: Form(of.UserRequest, bodies.User, MIB),
    RequestCode.AUTH_DELETE_USER: Form(of.UserRequest),
    RequestCode.AUTH_GET_USER: Form(of.UserRequest),
    RequestCode.AUTH_LIST_USER: Form(of.ListUsersRequest),
    RequestCode.AUTH_CREATE_ACL: Form(of.SubjectRequest, bodies.SubjectPolicies, MIB),
    RequestCode.AUTH_UPDATE_ACL: Form(of.SubjectRequest, bodies.SubjectPolicies, MIB),
    RequestCode.AUTH_DELETE_ACL: Form(of.DeletePolicyRequest),
    RequestCode.AUTH_GET_ACL: Form(of.SubjectRequest),
    RequestCode.AUTH_LIST_ACL: Form(of.ListPoliciesRequest),
    RequestCode.GET_BROKER_CONFIG: _NOTHING,
    RequestCode.UPDATE_BROKER_CONFIG: _PROPERTIES,
    RequestCode.GET_BROKER_RUNTIME_INFO: _NOTHING,
    RequestCode.GET_BROKER_HA_STATUS: _NOTHING,
    RequestCode.SET_MESSAGE_REQUEST_MODE: Form(None, bodies.RequestMode, MIB),
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: _NOTHING,
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: _NOTHING,
    RequestCode.CLEAN_UNUSED_TOPIC: _NOTHING,
    RequestCode.DELETE_EXPIRED_COMMITLOG: _NOTHING,
    # A name server.
    RequestCode.REGISTER_BROKER: Form(of.RegisterBrokerRequest, bodies.RegisterBrokerBody, FRAME_BYTES_MAX),
    RequestCode.UNREGISTER_BROKER: Form(of.UnregisterBrokerRequest),
    RequestCode.BROKER_HEARTBEAT: Form(of.BrokerHeartbeatRequest),
    RequestCode.QUERY_DATA_VERSION: Form(of.DataVersionRequest, bodies.DataVersion, MIB),
    RequestCode.GET_BROKER_MEMBER_GROUP: Form(of.MemberGroupRequest),
    RequestCode.GET_ROUTEINFO_BY_TOPIC: Form(of.RouteRequest),
    RequestCode.GET_BROKER_CLUSTER_INFO: _NOTHING,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: _NOTHING,
    RequestCode.GET_TOPICS_BY_CLUSTER: Form(of.ClusterRequest),
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: _NOTHING,
    RequestCode.GET_UNIT_TOPIC_LIST: _NOTHING,
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: _NOTHING,
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: _NOTHING,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: Form(of.BrokerNameRequest),
    RequestCode.ADD_WRITE_PERM_OF_BROKER: Form(of.BrokerNameRequest),
    RequestCode.DELETE_TOPIC_IN_NAMESRV: Form(of.DeleteRoutedTopicRequest),
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: Form(of.RegisterTopicRequest, bodies.TopicRoute, 4 * MIB),
    RequestCode.PUT_KV_CONFIG: Form(of.PutKvRequest),
    RequestCode.GET_KV_CONFIG: Form(of.KvRequest),
    RequestCode.DELETE_KV_CONFIG: Form(of.KvRequest),
    RequestCode.GET_KVLIST_BY_NAMESPACE: Form(of.KvNamespaceRequest),
    RequestCode.GET_NAMESRV_CONFIG: _NOTHING,
    RequestCode.UPDATE_NAMESRV_CONFIG: _PROPERTIES,
}

BODIES_USED: Final = frozenset(code for code, form in FORMS.items() if form.body is not None)
"""The request codes whose body is used."""


def limited(request: Command) -> Command | str:
    """Return the request with the body that it may have, or the reason to refuse it."""
    if not request.body:
        return request
    form = FORMS.get(request.code, _NOTHING)
    if form.body is None:
        return msgspec.structs.replace(request, body=b"")
    if len(request.body) > form.body_bytes_max:
        return f"a body of {len(request.body)} bytes, at most {form.body_bytes_max} allowed"
    return request


def limiting(handle: Handler) -> Handler:
    """Return a handler that passes requests on with limited bodies, and refuses larger ones."""

    def checked(request: Command, channel: Channel) -> Reply | Awaitable[Reply]:
        found = limited(request)
        if isinstance(found, str):
            return request.answer(ResponseCode.SYSTEM_ERROR, remark=found)
        return handle(found, channel)

    return checked
