"""Request codes that a server may know and that are not described further, and codes that no server knows."""

from typing import Final

EXISTING: Final = {
    354: "CHECK_ROCKSDB_CQ_WRITE_PROGRESS", 355: "EXPORT_ROCKSDB_CONFIG_TO_JSON",
    513: "UPDATE_AND_CREATE_STATIC_TOPIC", 902: "ADD_BROKER", 903: "REMOVE_BROKER",
    905: "NOTIFY_MIN_BROKER_ID_CHANGE",
    **{code: f"controller {code}" for code in range(1001, 1014)},
    **{code: f"cold data {code}" for code in range(2001, 2005)},
    200_056: "POP_ROLLBACK",
}  # fmt: skip
"""Known to some servers of 5.x.

They are requested without fields, so that they have no effect.
"""

WITHOUT_HANDLER: Final = {
    13: "QUERY_BROKER_OFFSET", 22: "GET_TOPIC_CONFIG_LIST", 23: "GET_TOPIC_NAME_LIST",
    27: "TRIGGER_DELETE_FILES", 47: "GET_CLIENT_CONFIG", 209: "SUSPEND_CONSUMER", 210: "RESUME_CONSUMER",
    211: "RESET_CONSUMER_OFFSET_IN_CONSUMER", 212: "RESET_CONSUMER_OFFSET_IN_BROKER",
    213: "ADJUST_CONSUMER_THREAD_POOL", 214: "WHO_CONSUME_THE_MESSAGE", 302: "REGISTER_MESSAGE_FILTER_CLASS",
}  # fmt: skip
"""Codes with a number and a name, but without a handler in brokers and name servers."""

OF_CLIENTS: Final = {
    39: "CHECK_TRANSACTION_STATE", 40: "NOTIFY_CONSUMER_IDS_CHANGED", 220: "RESET_CONSUMER_CLIENT_OFFSET",
    221: "GET_CONSUMER_STATUS_FROM_CLIENT", 326: "PUSH_REPLY_MESSAGE_TO_CLIENT",
}  # fmt: skip
"""Codes that servers send to clients; a server that receives one answers as for an unknown code."""

UNKNOWN: Final = (9_999, 32_767, 65_535, 1_000_000, 2**31 - 1, 0, -1, -(2**31))
"""Codes that no server knows."""
