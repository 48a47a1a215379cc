"""Values that all parts of the protocol share: flags, defaults, shares of budgets, accounts, and hashes.

Source: docs/reference/protocol/framing.md, "Shares", messages.md and access-control.md, "Accounts".
"""

import base64
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pytest

from mqproof.conformance.adapters.inspections.accounts import SECRET, signed
from mqproof.impl.remoting import (
    account_file,
    bodies,
    budget,
    channel,
    frame,
    headers,
    java_json,
    message,
    topic_names,
)
from mqproof.impl.remoting.batch import Part, decode_batch, encode_batch
from mqproof.impl.remoting.budget import Budget, NameBudget, Percentages, Shares
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.message import Message, StoredMessage
from mqproof.impl.remoting.recall_handle import RecallHandle, parse_handle
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.notices import Notices
from mqproof.impl.runtime.properties import ConfigError
from tests.impl.compared import Compared

_MIB: Final = 1 << 20


_HASHES: Final = {
    "TagA": 2598919, "Aa": 2112, "BB": 2112, "": 0, "polygenelubricants": -(1 << 31), "\u00e4": 228,
}  # fmt: skip


_ID: Final = "0A0001020000277F0000000000001000"


_ID_OF_6: Final = "20010DB8000000000000000000000001" + "0000277F" + "FFFFFFFFFFFFFFFF"


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps budgets from logging, which needs a running loop."""
    monkeypatch.setattr(Notices, "warn", lambda *_: None)


def test_constants_have_the_documented_values() -> None:
    """Flags of pulls and messages, permissions, and the limits of a connection."""
    site = Compared()
    for what, expected, observed in (
        ("the flags of a pull", (1, 2, 4, 8), (
            headers.PULL_COMMITS_OFFSET, headers.PULL_MAY_SUSPEND, headers.PULL_HAS_SUBSCRIPTION,
            headers.PULL_CLASS_FILTER)),
        ("the flags of a message", (1, 2, 12, 4, 8, 12, 16, 32), (
            message.SYS_COMPRESSED, message.SYS_MULTI_TAGS, message.SYS_TRANSACTION_MASK,
            message.SYS_TRANSACTION_PREPARED, message.SYS_TRANSACTION_COMMIT,
            message.SYS_TRANSACTION_ROLLBACK, message.SYS_BORN_HOST_V6, message.SYS_STORE_HOST_V6)),
        ("the permissions of a topic", (1, 2, 4, 6), (
            bodies.PERM_INHERIT, bodies.PERM_WRITE, bodies.PERM_READ, bodies.PERM_READ_WRITE)),
        ("the limits of a connection", channel.Limits(16 * _MIB, 65_535, 64 * _MIB, 65_535),
         channel.Limits()),
        ("the longest frame", 16 * _MIB, frame.FRAME_BYTES_MAX),
        ("the limits of bodies", (100_000, 10_000, 10_000, 1000, 16, 50_000), (
            bodies.TOPICS_MAX, bodies.LIST_MAX, bodies.SUBSCRIPTIONS_MAX, bodies.GROUPS_OF_CLIENT_MAX,
            bodies.NESTING_MAX, bodies.FILTERS_MAX)),
    ):  # fmt: skip
        site.compare(what, expected, observed)

    for kind, most, body in _LIMITED:
        for size in (most, most + 1):
            try:
                java_json.read(kind, json.dumps(body(size)).encode())
                is_allowed = True
            except java_json.BodyError:
                is_allowed = False
            site.compare(f"whether a {kind.__name__} may have {size} parts", size == most, is_allowed)


_LIMITED: Final[tuple[tuple[type[msgspec.Struct], int, Callable[[int], Any]], ...]] = (
    (bodies.GroupFilter, 4096, lambda n: {"topic": "t", "consumerGroup": "g", "expression": "x" * n}),
    (bodies.Subscription, 4096, lambda n: {"topic": "t", "tagsSet": ["x"] * n}),
    (bodies.Subscription, 4096, lambda n: {"topic": "t", "codeSet": [1] * n}),
    (bodies.Policy, 1000, lambda n: {
        "entries": [{"resource": "r", "actions": ["x"], "decision": "d"}] * n}),
    (bodies.BrokerData, 1000, lambda n: {
        "brokerName": "b", "cluster": "c", "brokerAddrs": {str(at): "a" for at in range(n)}}),
    (bodies.SubscriptionGroup, 16, lambda n: {"groupRetryPolicy": _nested(n)}),
)  # fmt: skip
"""Bodies with a part of a variable size, and the greatest size."""


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@dataclass(eq=False)
class _Peer:
    """A connection of a budget."""

    host: str

    @property
    def remote(self) -> tuple[str, int]:
        return self.host, 7


@pytest.mark.usefixtures("silent")
def test_shares_refuse_what_exceeds_them() -> None:
    """The shares of addresses and connections, and what they refuse."""
    site = Compared()
    for total, percent, least, expected in (
        (100_000, Percentages(), None, Shares(100_000, 50_000, 10_000)),
        (2500, Percentages(), None, Shares(2500, 1250, 1000)),
        (1999, Percentages(), None, Shares(1999, 1000, 1000)),
        (999, Percentages(), None, Shares(999, 999, 999)),
        (1000, Percentages(7, 3), 50, Shares(1000, 70, 50)),
    ):
        found = budget.shares_of(total, percent, *([least] if least else []))
        site.compare(f"the shares of {total} with {percent}", expected, found)
    whole, one_frame = 256 * _MIB, 16 * _MIB
    of_bytes = Shares(whole, whole // 2, whole // 10)
    found_shares = [each.limits for each in budget.server_budgets(10_000, one_frame)]
    site.compare("the shares of a server", [Shares(10_000, 5000, 1)] + [of_bytes] * 3, found_shares)
    found_shares = [each.limits for each in budget.server_budgets(500, one_frame, Percentages(8, 4))]
    of_bytes = Shares(whole, whole * 8 // 100, one_frame)
    site.compare("the set shares", [Shares(500, 500, 1)] + [of_bytes] * 3, found_shares)
    things = Budget("things", Shares(10, 6, 4))
    one, two, six, other = _Peer("10.0.0.1"), _Peer("10.0.0.1"), _Peer("2001:db8::1"), _Peer("10.0.0.2")
    steps: tuple[tuple[_Peer, int, str | None], ...] = (
        (one, 5, "0 things of this connection, at most 4 allowed"), (one, 4, None),
        (one, 1, "4 things of this connection, at most 4 allowed"),
        (two, 3, "4 things of address 10.0.0.1, at most 6 allowed"), (two, 2, None),
        (other, 3, None), (six, 2, "9 things of all connections, at most 10 allowed"), (six, 1, None),
        (six, 1, "10 things of all connections, at most 10 allowed"),
    )  # fmt: skip
    refusals = 0
    for peer, amount, reason in steps:
        found_reason = things.refusal(peer, amount)
        site.compare(f"the refusal of {amount} more of {peer.host}", reason, found_reason)
        refusals += reason is not None
        if found_reason is None:
            things.take(peer, amount)
    site.compare("the use and the refusals", (10, refusals), (things.used, things.refused))
    things.take(one, -4)
    things.take(two, -1)
    site.compare("the use after something is given back", 5, things.used)
    site.compare("whether it may be taken again", None, things.refusal(one, 4))
    things.take(one, 4)
    text = "5 things of address 10.0.0.1, at most 6 allowed"
    site.compare("whether more may be taken", text, things.refusal(two, 2))
    for host, network in (
        ("10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:0db8:0000:0000::/64"),
        ("2001:db8:0:0:ffff::1", "2001:0db8:0000:0000::/64"), ("fe80::1%eth0", "fe80:0000:0000:0000::/64"),
        ("2001:db8:0:1::1", "2001:0db8:0000:0001::/64"), ("strange:host", "strange:host"),
    ):  # fmt: skip
        site.compare(
            f"what counts for {host}",
            (network, network),
            (budget.host_of(_Peer(host)), budget.network_of(host)),
        )


@pytest.mark.usefixtures("silent")
def test_names_count_for_their_creators() -> None:
    """Names count for the address and the connection that created them, until they are deleted."""
    site = Compared()
    names = NameBudget("topics", Shares(7, 5, 3))
    one, two, other = _Peer("10.0.0.1"), _Peer("10.0.0.1"), _Peer("10.0.0.2")

    def compare(*expected: int) -> None:
        """Compare how many more names each connection may create."""
        for peer, count in zip((one, two, other), expected, strict=True):
            allowed = next(more for more in range(10) if names.refusal(peer, more + 1) is not None)
            site.compare(f"how many more names a connection of {peer.host} may create", count, allowed)

    compare(3, 3, 3)
    names.created(one, ["a", "b"])
    names.created(one, ["a", "b"])
    names.created(two, ["a"])
    compare(1, 3, 3)
    names.created(two, ["c", "d"])
    compare(1, 1, 3)
    names.created(two, ["e"])
    site.compare("the names", 5, names.used)
    compare(0, 0, 2)
    names.deleted(["a", "unknown"])
    compare(1, 0, 3)
    names.deleted(["a", "c", "d"])
    site.compare("the names after a deletion", 2, names.used)
    compare(2, 2, 3)
    names.created(two, ["f", "g"])
    del two
    two = _Peer("10.0.0.1")
    names.created(one, ["h"])
    compare(0, 0, 2)
    names.deleted(["e", "f", "g"])
    compare(1, 3, 3)


def test_identifiers_hashes_and_properties_have_their_forms() -> None:
    """Identifiers, hashes and properties of messages, and a message without its other members."""
    site = Compared()
    for text, code in _HASHES.items():
        site.compare(f"the hash of {text!r}", code, message.java_hash(text))
        site.compare(f"the code of the tag {text!r}", code, message.tags_code(text))
    for text in ("z" * 255, "z" * 256, "z" * 257, *(chr(33 + at) * (2 * at + 1) for at in range(90))):
        expected = 0
        for character in text:
            expected = (31 * expected + ord(character)) & 0xFFFFFFFF
        signed = expected - (1 << 32) if expected >> 31 else expected
        site.compare(f"the hash of {text!r}", signed, message.java_hash(text))
    site.compare("the code of no tag", 0, message.tags_code(None))
    for identifier, place in (
        (_ID, (("10.0.1.2", 10111), 4096)),
        (_ID_OF_6, (("2001:db8::1", 10111), (1 << 64) - 1)),
    ):
        site.compare(f"the place of {identifier}", place, message.parse_offset_message_id(identifier))
        site.compare("the identifier of the place", identifier, message.offset_message_id(*place))
    for wrong in (_ID[:-2], _ID + "00", _ID_OF_6[2:], _ID_OF_6 + "00", "", "x" * 32):
        try:
            site.report(f"{wrong!r} is the identifier of {message.parse_offset_message_id(wrong)}")
        except ValueError:
            continue
    plain = Message("t", b"b", {}, 0, 0, 0, 0, ("127.0.0.1", 0), ("127.0.0.1", 0), 0, 0)
    site.compare("a message with a topic and a body", plain, Message("t", b"b"))
    for properties, name in (({"UNIQ_KEY": "k"}, "k"), ({}, "7F000001" + "0" * 22 + "10"), ({"UNIQ_KEY": ""},
                             "7F000001" + "0" * 22 + "10")):  # fmt: skip
        stored = StoredMessage(Message("t", b"b", properties), 7, 16, 5, 100, 0)
        site.compare(f"the identifier of a message with {properties}", name, stored.message_id)
    for text, values in (
        ("a\x011\x02b\x012", {"a": "1", "b": "2"}), ("a\x011\x02", {"a": "1"}), ("", {}), ("a", {}),
        ("a\x01\x02\x011\x02c\x013\x02c\x014", {"c": "4"}), ("a\x011\x012", {"a": "1\x012"}),
    ):  # fmt: skip
        site.compare(f"the properties in {text!r}", values, message.decode_properties(text))
    written = message.encode_properties({"a": "1", "b": "", "": "2"})
    site.compare("written properties", "a\x011\x02b\x01\x02\x012", written)
    site.compare("no properties", "", message.encode_properties({}))
    for pair in ({"a\x01": "1"}, {"a": "\x02"}, {"a": "1", "b": "\x01"}, {"\x02": ""}):
        try:
            site.report(f"{pair} is written as {message.encode_properties(pair)!r}, expected an error")
        except ValueError:
            continue


def test_frames_names_handles_and_signatures_have_their_forms() -> None:
    """Frames, names of topics, handles of recalls and signatures, written and read."""
    site = Compared()
    written = frame.write_frame(b"a", b"", b"bc")
    site.compare("a written frame", b"\0\0\0\3abc", written)
    for size, expected, left in ((3, None, 3), (6, None, 6), (7, b"abc", 0), (9, b"abc", 2)):
        buffer = bytearray((written + b"de")[:size])
        found = frame.read_frame(buffer, 7)
        site.compare(f"the frame in {size} bytes", (expected, left), (found, len(buffer)))
    try:
        site.report(f"a frame that is too long is read: {frame.read_frame(bytearray(written), 6)!r}")
    except frame.FrameError as error:
        site.compare("the error", "frame of 7 bytes announced, at most 6 expected", str(error))
    names = {"x" * 127: True, "x" * 128: False, "": False, "%|azAZ09_-": True, "a b": False, "\u00e4": False}
    for name, is_right in names.items():
        site.compare(f"whether {name[:9]!r} may be a topic", is_right, topic_names.name_problem(name) is None)
    handle = RecallHandle("t", "b", 5, "k")
    text = base64.urlsafe_b64encode(b"v1 t b 5 k").decode()
    site.compare("a handle", (text, handle), (handle.encode(), parse_handle(text)))
    for size, is_right in ((768, True), (771, False)):
        long = RecallHandle("t", "b", 5, "k" * (size - len("v1 t b 5 ")))
        try:
            found_handle: RecallHandle | None = parse_handle(long.encode())
        except ValueError:
            found_handle = None
        site.compare(f"the handle of {size} bytes", long if is_right else None, found_handle)
    for plain, is_right in (
        (f"v1 t b {'1' * 18} k", True), (f"v1 t b {'1' * 19} k", False), ("v1  b 5 k", False),
        ("v1 t b 5 ", False), ("v2 t b 5 k", False), ("v1 t b x k", False), ("v1 t b 5", False),
        ("v1 t b 5 k l", False), ("v1 t b  k", False),
    ):  # fmt: skip
        try:
            is_read = parse_handle(base64.urlsafe_b64encode(plain.encode()).decode()).encode() != ""
        except ValueError:
            is_read = False
        site.compare(f"whether {plain!r} is a handle", is_right, is_read)
    fields = {"\uff5e": "1", "\U0001f600": "2", "b": "3", "a": "4", "B": "5"}
    request = Command(1, 2, fields=fields, body=b"body")
    expected_fields = signed(fields, b"body", "an-access-key", SECRET)
    found_fields = Credentials("an-access-key", SECRET).signed(request).fields
    site.compare("the signed fields", expected_fields, found_fields)


def test_batches_have_the_form_of_a_producer() -> None:
    """A batch as a producer writes it, and how many messages it may have."""
    site = Compared()
    parts = [Part(b"body", {"a": "b", "c": "d"}, 7), Part(b"", {}, -(1 << 31)), Part(b"x")]
    plain = b"".join(
        struct.pack(">iiiii", 22 + len(part.body) + len(text), 0, 0, part.flag, len(part.body)) + part.body
        + struct.pack(">h", len(text)) + text
        for part, text in zip(parts, (b"a\x01b\x02c\x01d", b"", b""), strict=True)
    )  # fmt: skip
    site.compare("a written batch", plain, encode_batch(parts))
    site.compare("a batch that is read", parts, decode_batch(plain, 3))
    long, wrong = "v" * (32767 - 2), ({"a": "v" * (32768 - 2)}, {"a": "\x02"})
    site.compare("the longest properties", 1, len(decode_batch(encode_batch([Part(b"", {"a": long})]), 1)))
    for what, attempt in (
        ("a batch of more messages than allowed", lambda: decode_batch(plain, 2)),
        ("an empty batch", lambda: decode_batch(b"", 3)),
        ("a flag of more than 32 bits", lambda: encode_batch([Part(b"", {}, 1 << 31)])),
        ("properties that are too long", lambda: encode_batch([Part(b"", wrong[0])])),
        ("properties with a separator", lambda: encode_batch([Part(b"", wrong[1])])),
    ):  # fmt: skip
        try:
            site.report(f"{what} is accepted: {attempt()!r:.80}")
        except ValueError:
            continue


def test_the_account_of_tools_is_read_and_never_shown() -> None:
    """The account of tools is one in YAML; an error names the file and the place, and no part of a secret."""
    site = Compared()
    whole = {"accessKey": "access-of-7", "secretKey": "1234567", "securityToken": "token"}
    short = {key: whole[key] for key in ("accessKey", "secretKey")}
    for given, token in ((whole, "token"), (short, None)):
        found = account_file.parse(json.dumps(given), "file")
        site.compare("the account", Credentials("access-of-7", "1234567", token), found)
        site.compare("the account as text", "Credentials(access-of-7)", repr(found))
    plain = account_file.parse("accessKey: access-of-7\nsecretKey: 1234567\n", "file")
    site.compare("the plain account", Credentials("access-of-7", "1234567"), plain)
    for text, shown in (
        ("accessKey: a\nsecretKey: [secret", "file: line 2, column 19: not valid YAML"),
        ("accessKey: a\nsecretKey: {secret", "file: line 2, column 19: not valid YAML"),
        ("accessKey: secret\n", "file: Object missing required field `secretKey`"),
        ("secretKey: [secret]\naccessKey: a\n", "file: Expected `str`, got `array` - at `$.secretKey`"),
        ("- secret", "file: Expected `object`, got `array`"),
        ("accessKey: a\nsecretKey: \x01", None),
    ):
        try:
            site.report(f"{text!r} is the account {account_file.parse(text, 'file')}, expected an error")
        except ConfigError as error:
            site.compare(f"the error for {text!r}", (shown or str(error), False), (str(error), "secret" in
                         str(error).replace("secretKey", "") or "\n" in str(error)))  # fmt: skip
