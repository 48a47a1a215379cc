"""The names that a topic can have, and the topics that clients may not send to.

See docs/reference/protocol/sending.md, "Topics".
"""

import re
from typing import Final

NAME_CHARACTERS_MAX: Final = 127

NOT_FOR_CLIENTS: Final = frozenset(
    {
        "SCHEDULE_TOPIC_XXXX",
        "RMQ_SYS_TRANS_HALF_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC",
        "rmq_sys_wheel_timer",
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)
"""Topics to which no client may send."""

_NAME: Final = re.compile(r"[%|a-zA-Z0-9_-]+")


def reply_topic(cluster: str) -> str:
    """Return the topic of a cluster for replies to requests between clients."""
    return f"{cluster}_REPLY_TOPIC"


def name_problem(topic: str) -> str | None:
    """Return why this cannot be a topic's name; None if it can."""
    if not topic:
        return "the topic is empty"
    if len(topic) > NAME_CHARACTERS_MAX:
        return f"the topic has {len(topic)} characters, at most {NAME_CHARACTERS_MAX} are allowed"
    if not _NAME.fullmatch(topic):
        return f"the topic {topic!r} has a character other than % | a-z A-Z 0-9 _ -"
    return None
