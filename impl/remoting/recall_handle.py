"""The handle with which a producer recalls a message that waits for its time.

See docs/reference/protocol/timers.md, "Recalls".
"""

import base64
import binascii
import re
from typing import Final, NamedTuple

_BYTES_MAX: Final = 1024
_VERSION: Final = "v1"
_TIME: Final = re.compile(r"[0-9]{1,18}")


class RecallHandle(NamedTuple):
    """What a recall names: a message that waits at one broker."""

    topic: str
    broker: str
    due_ms: int
    key: str
    """The unique key of the message."""

    def encode(self) -> str:
        """Return the text that the response of a send contains."""
        text = f"{_VERSION} {self.topic} {self.broker} {self.due_ms} {self.key}"
        return base64.urlsafe_b64encode(text.encode()).decode()


def parse_handle(text: str) -> RecallHandle:
    """Return the parts of a handle.

    Raises:
        ValueError: it is not a handle.
    """
    try:
        if len(text) > _BYTES_MAX:
            raise ValueError
        words = base64.b64decode(text, altchars=b"-_", validate=True).decode().split(" ")
        version, topic, broker, due, key = words
    except (ValueError, binascii.Error):
        raise ValueError("the recall handle is invalid") from None
    if version != _VERSION or not topic or not key or not _TIME.fullmatch(due):
        raise ValueError("the recall handle is invalid")
    return RecallHandle(topic, broker, int(due), key)
