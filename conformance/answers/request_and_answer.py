"""A request with its answer, and a violation of a rule."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec

from mqproof.conformance.wire.frames import Frame

SEND: Final = 10
PULL: Final = 11
QUERY_MESSAGE: Final = 12
QUERY_OFFSET: Final = 14
COMMIT: Final = 15
SEARCH: Final = 29
GET_MAX_OFFSET: Final = 30
GET_MIN_OFFSET: Final = 31
EARLIEST_TIME: Final = 32
VIEW_MESSAGE: Final = 33
HEART_BEAT: Final = 34
UNREGISTER: Final = 35
END_TRANSACTION: Final = 37
LIST_MEMBERS: Final = 38
CHECK_TRANSACTION: Final = 39
NOTIFY_MEMBERS: Final = 40
DELETE_TOPIC: Final = 215
RESET_OFFSETS: Final = 220
SEND_V2: Final = 310
SEND_BATCH: Final = 320
LITE_PULL: Final = 361

_V2: Final = dict(
    zip(
        "abcdefghijklm",
        (
            *("producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag"),
            *("bornTimestamp", "flag", "properties", "reconsumeTimes", "unitMode", "maxReconsumeTimes"),
            "batch",
        ),
        strict=True,
    )
)


class Exchange(msgspec.Struct, frozen=True, dict=True):
    """A request of a client, and the answer."""

    request: Frame
    answer: Frame
    client: str
    """The address of the client's end of the connection."""
    server: str
    asked_ms: int
    answered_ms: int
    asked_at: int = 0
    """The number of the request among all frames seen."""
    answered_at: int = 0
    """The number of the answer among all frames seen."""

    @cached_property
    def fields(self) -> Mapping[str, str]:
        """The header of the request; SEND_MESSAGE_V2 and batches have the members of SEND_MESSAGE."""
        return long_names(self.request)

    def number(self, name: str, default: int = 0) -> int:
        """Return a member of the request's header as a number."""
        return _number(self.fields.get(name, "")) or default

    def answered(self, name: str) -> int | None:
        """Return a member of the answer's header as a number; None if it is not one."""
        return _number(self.answer.fields.get(name, ""))


@dataclass(frozen=True, slots=True)
class Wrong:
    """An answer that a rule of the protocol documentation does not allow."""

    rule: str
    """The section of the documentation."""
    text: str
    """What the rule expects, and what was observed."""


def long_names(request: Frame) -> Mapping[str, str]:
    """Return the header of a request under its long names."""
    if request.code not in (SEND_V2, SEND_BATCH):
        return request.fields
    return {_V2.get(name, name): value for name, value in request.fields.items()}


def _number(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() else None
