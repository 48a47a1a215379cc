"""Mutants of the limits that protect a broker and a consumer: each lacks one limit or one check.

`ATTACKS_OF` names the attack that must succeed against each mutant; its invariant is the one that must detect
it.
"""

from collections.abc import Callable
from typing import Any, Final

from mqproof.conformance.mutants.mutant import Mutant, nothing
from mqproof.impl.access import permissions
from mqproof.impl.access.acl import Rules
from mqproof.impl.access.gate import Gate
from mqproof.impl.client.connection import records
from mqproof.impl.client.connection.records import Answer, AnswerReader
from mqproof.impl.client.messages.compression import MESSAGE_BYTES_MAX
from mqproof.impl.remoting import command, frame, headers
from mqproof.impl.remoting.budget import Budget
from mqproof.impl.remoting.command import Command, Serialization
from mqproof.impl.remoting.headers import HeaderError
from mqproof.impl.remoting.message import SYS_COMPRESSED, StoredMessage
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.runtime.network import Listener, ReceiverFactory
from mqproof.impl.runtime.security.peer_handshake import Accepting
from mqproof.impl.runtime.security.peer_network import PeerNetwork

# TRUST-11: fields

_read_header, _check, _refusal, _decode = headers.read, Rules.check, Budget._refusal, command.decode


def _any_frame(buffer: bytearray, _frame_bytes_max: int) -> bytes | None:
    return frame.read_frame(buffer, 1 << 40)


def _any_header(data: bytes) -> Command:
    end = 4 + int.from_bytes(data[1:4], "big")
    if data[0] == Serialization.JSON and command.HEADER_BYTES_MAX < end - 4 <= len(data):
        return command._decode_json(data[4:end], data[end:])
    return _decode(data)


def _nearest_value(kind: Any, fields: dict[str, str]) -> Any:
    """Use the nearest value within the limits, in place of a refusal."""
    try:
        return _read_header(kind, fields)
    except HeaderError:
        near = {name: _near(value) for name, value in fields.items()}
        return _read_header(kind, near)


def _near(value: str) -> str:
    return str(min(max(int(value), 0), 2**31 - 1)) if value.lstrip("-").isdigit() else value


def _any_body(request: Command) -> Command:
    return request


# TRUST-12: shares


def _unlimited(name: str) -> Callable[..., str | None]:
    """Return a check of budgets that lacks the limits of one of them."""

    def refusal(budget: Budget, *arguments: Any) -> str | None:
        return None if budget.name == name else _refusal(budget, *arguments)

    return refusal


# TRUST-13: permissions


def _yes(*_: object) -> bool:
    return True


def _without(reason: str) -> Callable[..., None]:
    """Return a check of rules that lacks the refusal whose text contains the words."""

    def check(rules: Rules, request: Command, ip: str, *more: Any) -> None:
        try:
            _check(rules, request, ip, *more)
        except RefusedError as refusal:
            if reason not in refusal.remark:
                raise

    return check


_gate = Gate.refusal


def _knows_no_topics(gate: Gate, *arguments: Any) -> Command | None:
    gate._topic_at = permissions.no_messages
    return _gate(gate, *arguments)


# TRUST-1: slaves


async def _open_to_all(
    network: PeerNetwork, host: str, port: int, on_connection: ReceiverFactory
) -> Listener:
    return await network._inner.listen(host, port, on_connection)


_accepted = Accepting.received


def _proved_by_a_greeting(end: Accepting, data: bytes) -> bytes:
    answer = _accepted(end, data)
    end.is_done = end.is_done or end._theirs is not None
    return answer


def _any_proof(end: Any, _expected: bytes) -> bool:
    if len(end._buffer) < 32:
        return False
    del end._buffer[:32]
    return True


# TRUST-14: bodies

_read_answer, _inflated = AnswerReader.read, records._inflated


async def _any_size(stored: StoredMessage, _bytes_max: int, pause: Any) -> StoredMessage | None:
    return await _inflated(stored, 1 << 40, pause)


async def _whole_answer(reader: AnswerReader, body: bytes, is_wanted: Any, _room: Any = None) -> Answer:
    async with reader._turn:
        found = [
            await _inflated(stored, MESSAGE_BYTES_MAX, records._Pause()) or stored
            for stored in records._split(body)
            if is_wanted(stored)
        ]
    return Answer(tuple(found), None)


async def _without_the_rest(*arguments: Any, **named: Any) -> Answer:
    answer = await _read_answer(*arguments, **named)
    return Answer(answer.messages, None)


async def _without_large_ones(*arguments: Any, **named: Any) -> Answer:
    answer = await _read_answer(*arguments, **named)
    return Answer(tuple(one for one in answer.messages if not _is_compressed(one)), answer.left_out)


def _is_compressed(stored: StoredMessage) -> bool:
    message = stored.message
    return bool(message.sys_flag & SYS_COMPRESSED) and message.body.startswith(b"\x78")


_REMOTING: Final = "mqproof.impl.remoting"
_ACCESS: Final = "mqproof.impl.access"
_RECORDS: Final = "mqproof.impl.client.connection.records"
_PEERS: Final = "mqproof.impl.runtime.security"
_REFUSAL: Final = f"{_REMOTING}.budget:Budget._refusal"
_CHECK: Final = f"{_ACCESS}.acl:Rules.check"

_LIST: Final[tuple[tuple[str, str, str, str, Callable[..., Any], str], ...]] = (
    # name, defect, invariant, place, wrong rule, attack
    ("frame-of-any-length", "a frame of any announced length is awaited", "TRUST-11",
     f"{_REMOTING}.channel:read_frame", _any_frame, "frame-length-one-above"),
    ("header-of-any-size", "a header of any size is read", "TRUST-11",
     f"{_REMOTING}.channel:decode", _any_header, "header-above-limit"),
    ("any-number-of-fields", "a header with any number of fields is read", "TRUST-11",
     f"{_REMOTING}.command:_check_count", nothing, "header-of-1001-fields"),
    ("nearest-value-used", "a number beyond its limit is replaced by the nearest one", "TRUST-11",
     f"{_REMOTING}.headers:read", _nearest_value, "commit-beyond-int64"),
    ("body-of-any-size", "a body is not compared with the limit of its request", "TRUST-11",
     f"{_REMOTING}.requests:limited", _any_body, "group-body-large"),
    ("nested-at-any-depth", "the members of a group may be nested at any depth", "TRUST-11",
     f"{_REMOTING}.bodies:_check_depth", nothing, "group-nested"),
    ("any-topic-name", "a topic may have any name", "TRUST-11",
     "mqproof.impl.broker.processors.topic_admin:name_problem", nothing, "topic-path"),
    ("any-term", "a member takes any term from any peer", "TRUST-11",
     "mqproof.impl.dledger.state:State.is_too_far", lambda *_: False, "vote-term-greatest"),
    ("held-pulls-without-shares", "held pulls have no limits", "TRUST-12",
     _REFUSAL, _unlimited("held pulls"), "share-of-held-pulls"),
    ("unanswered-without-shares", "bytes of unanswered requests have no limits", "TRUST-12",
     _REFUSAL, _unlimited("bytes of unanswered requests"), "share-of-unanswered-bytes"),
    ("incomplete-without-shares", "bytes of incomplete frames have no limits", "TRUST-12",
     _REFUSAL, _unlimited("bytes of incomplete frames"), "share-of-incomplete-frames"),
    ("unread-without-shares", "bytes of unread answers have no limits", "TRUST-12",
     _REFUSAL, _unlimited("bytes of unread answers"), "share-of-unread-answers"),
    ("connections-without-shares", "connections have no limits", "TRUST-12",
     _REFUSAL, _unlimited("connections"), "share-of-connections"),
    ("memberships-without-shares", "memberships in groups have no limits", "TRUST-12",
     "mqproof.impl.broker.state.clients:ClientTable.refusal", nothing, "share-of-memberships"),
    ("topics-without-shares", "topics have no limits", "TRUST-12",
     "mqproof.impl.broker.state.topics:TopicTable._require_room", nothing, "share-of-topics"),
    ("groups-without-shares", "groups have no limits", "TRUST-12",
     "mqproof.impl.broker.state.subscription_groups:SubscriptionGroupTable._require_room", nothing,
     "share-of-groups"),
    ("unsigned-request-taken", "a request without an access key is not checked", "TRUST-13",
     _CHECK, _without("no access key"), "unsigned-view"),
    ("unknown-account-taken", "a request of an unknown account is not checked", "TRUST-13",
     _CHECK, _without("is not known"), "signature-of-unknown"),
    ("signature-not-checked", "any signature is accepted", "TRUST-13",
     f"{_ACCESS}.acl:_is_signed", _yes, "signature-of-other-body"),
    ("deny-not-checked", "an account has permission for every topic and group", "TRUST-13",
     f"{_ACCESS}.acl:Account.allows", _yes, "denied-pull"),
    ("administrator-not-required", "every account may send the requests of administrators", "TRUST-13",
     _CHECK, _without("does not belong to an administrator"), "not-admin-delete-log"),
    ("viewed-without-permission", "a message is read by its place without permission for its topic",
     "TRUST-13", f"{_ACCESS}.gate:Gate.refusal", _knows_no_topics, "denied-view"),
    ("handshake-skipped", "slaves connect without the handshake", "TRUST-1",
     f"{_PEERS}.peer_network:PeerNetwork.listen", _open_to_all, "slave-with-checksums"),
    ("any-proof-taken", "any proof of the peer secret is accepted", "TRUST-1",
     f"{_PEERS}.peer_handshake:_End._take_proof", _any_proof, "slave-wrong-proof"),
    ("greeting-is-proof", "a slave counts as proved after its greeting", "TRUST-1",
     f"{_PEERS}.peer_handshake:Accepting.received", _proved_by_a_greeting, "slave-no-proof-yet"),
    ("body-of-any-length", "a body of any length is decompressed", "TRUST-14",
     f"{_RECORDS}:_inflated", _any_size, "body-of-40-mib"),
    ("answer-of-any-length", "the bodies of one answer have no limit", "TRUST-14",
     f"{_RECORDS}:AnswerReader.read", _whole_answer, "bodies-of-24-mib"),
    ("rest-of-answer-skipped", "messages beyond the limit of an answer are skipped", "TRUST-14",
     f"{_RECORDS}:AnswerReader.read", _without_the_rest, "bodies-of-24-mib"),
    ("large-body-skipped", "a message with a body beyond the limit is skipped", "TRUST-14",
     f"{_RECORDS}:AnswerReader.read", _without_large_ones, "body-of-40-mib"),
)  # fmt: skip

MUTANTS: Final = {row[0]: Mutant(*row[:5]) for row in _LIST}
"""The mutants by name."""

ATTACKS_OF: Final = {row[0]: row[5] for row in _LIST}
"""The attack that must succeed against each mutant, by the mutant's name."""
