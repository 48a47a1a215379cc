"""Messages, and the small codecs that broker, store and client share.

Sources: docs/reference/protocol/messages.md, "Properties", "Message identifiers" and "Tag codes".
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from operator import mul
from typing import Final, overload

import msgspec

from mqproof.impl.runtime.clock import Clock, month_of, now_ms

Address = tuple[str, int]
"""Numeric IPv4 or IPv6 address, and port."""

NAME_END: Final = "\x01"
VALUE_END: Final = "\x02"

ARRIVE_TIME: Final = "ARRIVE_TIME"
CLUSTER: Final = "CLUSTER"
CORRELATION_ID: Final = "CORRELATION_ID"
DELAY: Final = "DELAY"
KEYS: Final = "KEYS"
MAX_RECONSUME_TIMES: Final = "MAX_RECONSUME_TIMES"
MESSAGE_TYPE: Final = "MSG_TYPE"
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
PUSH_REPLY_TIME: Final = "PUSH_REPLY_TIME"
REAL_QUEUE_ID: Final = "REAL_QID"
REAL_TOPIC: Final = "REAL_TOPIC"
RECONSUME_TIME: Final = "RECONSUME_TIME"
REPLY_TO_CLIENT: Final = "REPLY_TO_CLIENT"
RETRY_TOPIC: Final = "RETRY_TOPIC"
TAGS: Final = "TAGS"
TIMER_DELAY_MS: Final = "TIMER_DELAY_MS"
TIMER_DELAY_S: Final = "TIMER_DELAY_SEC"
TIMER_DELIVER_MS: Final = "TIMER_DELIVER_MS"
TIME_TO_LIVE: Final = "TTL"
UNIQUE_KEY: Final = "UNIQ_KEY"
WAIT: Final = "WAIT"

TIMER_REQUESTS: Final = (TIMER_DELAY_S, TIMER_DELAY_MS, TIMER_DELIVER_MS)
"""The properties by which a producer asks for delivery at a time; the first one counts."""

RETRY_PREFIX: Final = "%RETRY%"
"""The prefix of a group's retry topic, which holds the messages that it failed to consume."""

MESSAGE_TYPE_REPLY: Final = "reply"
"""The value of MESSAGE_TYPE in a reply."""

SYS_COMPRESSED: Final = 0x1
SYS_MULTI_TAGS: Final = 0x2
SYS_TRANSACTION_MASK: Final = 0xC
SYS_TRANSACTION_PREPARED: Final = 0x4
SYS_TRANSACTION_COMMIT: Final = 0x8
SYS_TRANSACTION_ROLLBACK: Final = 0xC
SYS_BORN_HOST_V6: Final = 0x10
SYS_STORE_HOST_V6: Final = 0x20


class Message(msgspec.Struct, frozen=True):
    """A message as a producer sends it, with the fields that the broker adds before it stores the message.

    It is a msgspec struct, which takes a tenth of the time to create; `msgspec.structs.replace` returns a
    changed copy. `body` is as sent (compressed bytes stay compressed). The IPv6 bits of `sys_flag` need not
    be set, because they follow from the hosts.
    """

    topic: str
    body: bytes
    properties: Mapping[str, str] = {}
    queue_id: int = 0
    flag: int = 0
    sys_flag: int = 0
    born_timestamp_ms: int = 0
    born_host: Address = ("127.0.0.1", 0)
    store_host: Address = ("127.0.0.1", 0)
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0

    @property
    def born_timestamp_us(self) -> int | None:
        """The producer's time for event logs, or None if it does not fit into 64 bits of microseconds."""
        microseconds = self.born_timestamp_ms * 1000
        return microseconds if -(1 << 63) <= microseconds < 1 << 63 else None


class Batch(Sequence[Message]):
    """Messages that differ in their bodies, properties and flags only, with a list for each of these.

    A message is created when it is read: the store needs only the lists.
    """

    __slots__ = ("bodies", "common", "flags", "pairs")

    def __init__(
        self, common: Message, bodies: list[bytes], pairs: list[dict[str, str]], flags: list[int]
    ) -> None:
        """`pairs` has the properties of each message as `decode_pairs` returns them."""
        self.common = common
        self.bodies = bodies
        self.pairs = pairs
        self.flags = flags

    def values(self, name: str) -> list[str | None]:
        """Return the value of a property in each message; None where it is absent."""
        begin = len(name) + len(NAME_END)
        return [pair[begin:] if (pair := pairs.get(name)) else None for pairs in self.pairs]

    def __len__(self) -> int:
        return len(self.bodies)

    @overload
    def __getitem__(self, at: int) -> Message: ...
    @overload
    def __getitem__(self, at: slice) -> list[Message]: ...
    def __getitem__(self, at: int | slice) -> Message | list[Message]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        properties = decode_properties(VALUE_END.join(self.pairs[at].values()))
        return msgspec.structs.replace(
            self.common, body=self.bodies[at], properties=properties, flag=self.flags[at]
        )


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message and its place in a broker's store."""

    message: Message
    queue_offset: int
    commit_offset: int
    """Byte offset of the record in the commit log."""
    store_timestamp_ms: int
    size: int
    """Size of the whole record in bytes."""
    body_crc: int

    @property
    def offset_message_id(self) -> str:
        """The identifier that the broker assigned: the location of the record."""
        return offset_message_id(self.message.store_host, self.commit_offset)

    @property
    def message_id(self) -> str:
        """The producer's unique key, which is the same on every retry; otherwise the broker's identifier."""
        return self.message.properties.get(UNIQUE_KEY) or self.offset_message_id


def encode_properties(properties: Mapping[str, str]) -> str:
    """Encode properties as `name 0x01 value`, joined by 0x02. Readers accept a 0x02 at the end as well.

    Raises:
        ValueError: a name or value contains one of the two separators.
    """
    text = VALUE_END.join(map(NAME_END.join, properties.items()))
    if not _is_separated(text, len(properties), 1 if properties else 0):
        raise ValueError(f"a property holds 0x01 or 0x02: {dict(properties)!r}")
    return text


def join_pairs(each: Sequence[Mapping[str, str]]) -> list[str]:
    """Encode the properties of several messages, like `encode_properties`, from their pairs.

    All are checked together.
    """
    texts = [VALUE_END.join(pairs.values()) for pairs in each]
    if _is_separated("".join(texts), sum(map(len, each)), sum(map(bool, each))):
        return texts
    return [encode_properties(decode_properties(text)) for text in texts]  # raises for the first wrong one


def _is_separated(text: str, pairs: int, texts: int) -> bool:
    """Return whether the separators are those of so many pairs in so many texts, and no others."""
    return text.count(NAME_END) == pairs and text.count(VALUE_END) == pairs - texts


def decode_properties(text: str) -> dict[str, str]:
    """Return the properties by name.

    The last value of a repeated name counts. Incomplete pairs are omitted.
    """
    properties = {}
    for pair in text.split(VALUE_END):
        name, _, value = pair.partition(NAME_END)
        if name and value:
            properties[name] = value
    return properties


def decode_pairs(text: str) -> dict[str, str]:
    """Return the same properties by name, each still encoded with its name before the value."""
    pairs = {}
    for pair in text.split(VALUE_END):
        name, _, value = pair.partition(NAME_END)
        if name and value:
            pairs[name] = pair
    return pairs


_POWERS_OF_31: Final = [pow(31, exponent, 1 << 32) for exponent in range(256)]


def java_hash(text: str) -> int:
    """Return Java's String.hashCode: 31*h + c over UTF-16 units, as a signed 32-bit number."""
    if text.isascii() and len(text) <= len(_POWERS_OF_31):
        value: int = sum(map(mul, reversed(text.encode()), _POWERS_OF_31)) & 0xFFFFFFFF
        return value - (1 << 32) if value >> 31 else value
    value = 0
    units = text.encode("utf-16-le", "surrogatepass")
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


@lru_cache(maxsize=4096)
def tags_code(tags: str | None) -> int:
    """Return the hash of the tags, which a consume queue stores for filtering; 0 for no tags."""
    return java_hash(tags) if tags else 0


@lru_cache(maxsize=4096)
def encode_address(address: Address) -> bytes:
    """Return 4 or 16 address bytes, then the port as 4 bytes.

    Raises ValueError for a host that is not numeric.
    """
    return ip_address(address[0]).packed + address[1].to_bytes(4, "big")


@lru_cache(maxsize=4096)
def decode_address(data: bytes) -> Address:
    """Return the address in 8 or 20 bytes."""
    return str(ip_address(data[:-4])), int.from_bytes(data[-4:], "big")


def offset_message_id(store_host: Address, commit_offset: int) -> str:
    """Return the broker's identifier of a record: upper-case hex of host, port and commit log offset."""
    return f"{address_digits(store_host)}{commit_offset:016X}"


@lru_cache(maxsize=4096)
def address_digits(address: Address) -> str:
    """Return the part of a record's identifier before the digits of its commit log offset."""
    return encode_address(address).hex().upper()


def parse_offset_message_id(text: str) -> tuple[Address, int]:
    """Return the store host and commit log offset.

    Raises ValueError when the text is not such an identifier.
    """
    data = bytes.fromhex(text)
    if len(data) not in (16, 28):
        raise ValueError(f"message id {text!r} has {len(text)} characters, 32 or 56 expected")
    return decode_address(data[:-8]), int.from_bytes(data[-8:], "big")


class UniqueKeys:
    """A producer's unique keys: 32 upper-case hex characters. A generator never repeats one.

    Their layout is in docs/reference/protocol/messages.md, "Message identifiers". If the clock steps back,
    the time in the keys does not, within a month.
    """

    def __init__(self, chance: random.Random, clock: Clock, host: str = "127.0.0.1") -> None:
        self._chance = chance
        self._clock = clock
        self._process = ip_address(host).packed + chance.randbytes(2)
        self._month = range(0)
        self._prefix = ""
        self._elapsed_ms = -1
        self._counter = self._first_counter = 0

    def take(self) -> str:
        time_ms = now_ms(self._clock)
        if time_ms not in self._month:
            # Draw a new random part, because the times of different months repeat.
            self._prefix = (self._process + self._chance.randbytes(4)).hex().upper()
            self._month = month_of(time_ms)
            self._elapsed_ms = -1
        elapsed_ms = max(self._elapsed_ms, time_ms - self._month.start)
        if elapsed_ms == self._elapsed_ms and self._counter == self._first_counter:
            elapsed_ms += 1  # this millisecond has used every number of the counter
        if elapsed_ms > self._elapsed_ms:
            self._elapsed_ms, self._first_counter = elapsed_ms, self._counter
        key = f"{self._prefix}{self._elapsed_ms & 0xFFFFFFFF:08X}{self._counter:04X}"
        self._counter = (self._counter + 1) & 0xFFFF
        return key
