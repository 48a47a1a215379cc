"""The table of request codes and their processors."""

from typing import Final

from mqproof.impl.broker.processors import (
    acl_admin,
    broker_admin,
    connections,
    consumer_calls,
    group_admin,
    groups,
    inspection,
    lookups,
    offset_admin,
    pull,
    queries,
    recalls,
    replies,
    retries,
    send,
    topic_admin,
    transaction_ends,
)
from mqproof.impl.broker.services import Processor
from mqproof.impl.remoting.codes import RequestCode

PROCESSORS: Final[dict[int, Processor]] = {
    RequestCode.SEND_MESSAGE: send.send_message,
    RequestCode.SEND_MESSAGE_V2: send.send_message,
    RequestCode.SEND_BATCH_MESSAGE: send.send_message,
    RequestCode.CONSUMER_SEND_MSG_BACK: retries.send_back,
    RequestCode.PULL_MESSAGE: pull.pull_message,
    RequestCode.LITE_PULL_MESSAGE: pull.pull_message,
    RequestCode.QUERY_CONSUMER_OFFSET: queries.query_offset,
    RequestCode.UPDATE_CONSUMER_OFFSET: queries.update_offset,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: queries.search_offset,
    RequestCode.GET_MAX_OFFSET: queries.max_offset,
    RequestCode.GET_MIN_OFFSET: queries.min_offset,
    RequestCode.GET_EARLIEST_MSG_STORETIME: queries.earliest_store_time,
    RequestCode.QUERY_MESSAGE: lookups.query_message,
    RequestCode.VIEW_MESSAGE_BY_ID: lookups.view_message,
    RequestCode.GET_ALL_DELAY_OFFSET: lookups.delay_offsets,
    RequestCode.HEART_BEAT: groups.heartbeat,
    RequestCode.UNREGISTER_CLIENT: groups.unregister,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: groups.consumer_ids,
    RequestCode.LOCK_BATCH_MQ: groups.lock_queues,
    RequestCode.UNLOCK_BATCH_MQ: groups.unlock_queues,
    RequestCode.CHECK_CLIENT_CONFIG: groups.check_client,
    RequestCode.GET_CONSUMER_CONNECTION_LIST: connections.consumer_connections,
    RequestCode.GET_PRODUCER_CONNECTION_LIST: connections.producer_connections,
    RequestCode.GET_ALL_PRODUCER_INFO: connections.all_producers,
    **topic_admin.PROCESSORS,
    **group_admin.PROCESSORS,
    **offset_admin.PROCESSORS,
    **consumer_calls.PROCESSORS,
    **inspection.PROCESSORS,
    **acl_admin.PROCESSORS,
    **broker_admin.PROCESSORS,
    **transaction_ends.PROCESSORS,
    **recalls.PROCESSORS,
    **replies.PROCESSORS,
}
"""Maps a request code to its processor."""
