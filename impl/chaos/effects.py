"""What becomes of one request or one answer when a fault acts on it. Pure functions of the commands.

Faults that change more than one request (a restart, a storm) are in broker_port.py and group_changes.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from mqproof.impl.chaos.draws import Firing
from mqproof.impl.chaos.route_rewriting import without_a_broker
from mqproof.impl.remoting import java_json
from mqproof.impl.remoting.bodies import LockedQueues
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.headers import PULL_COMMITS_OFFSET
from mqproof.impl.remoting.message import SYS_TRANSACTION_MASK
from mqproof.impl.remoting.signing import SIGNATURE

_REMARK: Final = "by the chaos proxy"
_SIZE_BYTES: Final = 4
_HALF: Final = "TRAN_MSG"
"""The property of a half message."""
_OTHER_ANSWERS: Final = 3
_SLAVE_ID: Final = "1"


@dataclass(frozen=True, slots=True)
class OnRequest:
    """What becomes of a request."""

    answer: Command | None = None
    """The answer of the proxy. The request is then not forwarded."""
    vanishes: bool = False
    """It is neither forwarded nor answered."""
    cuts: bool = False
    """The connection closes, and nothing is forwarded."""
    copies: int = 1
    """How often it is forwarded. Only the first answer counts."""
    replaced: Command | None = None
    """The request to forward in its place."""
    delay_ms: int = 0
    """It is forwarded after this time."""


@dataclass(frozen=True, slots=True)
class OnAnswer:
    """What becomes of an answer."""

    is_lost: bool = False
    """The connection closes in its place."""
    delay_ms: int = 0
    """It is passed on after this time."""
    after_answers: int = 0
    """It is passed on after so many others, if that is sooner than `delay_ms`."""
    replaced: Command | None = None
    """The answer to pass on in its place."""


RequestEffect = Callable[[Firing, Command, Command | None], OnRequest | None]
"""Maps a request and the stream's last answer. Returns None if the fault cannot act on the request."""

AnswerEffect = Callable[[Firing, Command, Command, Command | None], OnAnswer | None]
"""Maps a request, its answer and the stream's last answer. Returns None if the fault cannot act on them."""


def _refusal(code: ResponseCode) -> RequestEffect:
    def refuse(_: Firing, request: Command, __: Command | None) -> OnRequest | None:
        return None if request.is_oneway else OnRequest(answer=request.answer(code, remark=_REMARK))

    return refuse


def _cut(_: Firing, __: Command, ___: Command | None) -> OnRequest:
    return OnRequest(cuts=True)


def _vanish(_: Firing, request: Command, __: Command | None) -> OnRequest:
    if request.is_oneway:
        return OnRequest(vanishes=True)
    return OnRequest(answer=request.answer(ResponseCode.SYSTEM_BUSY, remark=_REMARK))


def _lose_commit(firing: Firing, request: Command, last: Command | None) -> OnRequest | None:
    if request.code == RequestCode.UPDATE_CONSUMER_OFFSET:
        return _vanish(firing, request, last)
    flags = _number(request.fields.get("sysFlag"))
    if flags is None or not flags & PULL_COMMITS_OFFSET or SIGNATURE in request.fields:
        return None
    fields = {**request.fields, "sysFlag": str(flags & ~PULL_COMMITS_OFFSET)}
    return OnRequest(replaced=msgspec.structs.replace(request, fields=fields))


def _twice(_: Firing, request: Command, __: Command | None) -> OnRequest | None:
    fields = request.fields
    flags = _number(fields.get("sysFlag") or fields.get("f"))
    is_half = _HALF in (fields.get("properties") or fields.get("i") or "")
    if request.is_oneway or flags is None or flags & SYS_TRANSACTION_MASK or is_half:
        return None
    return OnRequest(copies=2)


def _fewer(_: Firing, request: Command, __: Command | None) -> OnRequest | None:
    # A signature covers the fields, so a signed request cannot be changed.
    if SIGNATURE in request.fields or (_number(request.fields.get("maxMsgNums")) or 0) < 2:
        return None
    return OnRequest(replaced=msgspec.structs.replace(request, fields={**request.fields, "maxMsgNums": "1"}))


def _no_lock(_: Firing, request: Command, __: Command | None) -> OnRequest | None:
    body = java_json.write(LockedQueues([]), standard=True)
    return None if request.is_oneway else OnRequest(answer=request.answer(ResponseCode.SUCCESS, body=body))


def _repeat_check(_: Firing, __: Command, ___: Command | None) -> OnRequest:
    return OnRequest(copies=2)


def _late(firing: Firing, _: Command, __: Command | None) -> OnRequest:
    return OnRequest(delay_ms=firing.delay_ms)


def _no_route(_: Firing, request: Command, __: Command | None) -> OnRequest:
    remark = f"no topic route info, {_REMARK}"
    return OnRequest(answer=request.answer(ResponseCode.TOPIC_NOT_EXIST, remark=remark))


def _pretend(_: Firing, request: Command, last: Command | None) -> OnRequest | None:
    """Answer a send as the one before, which breaks the promise of SEND_OK."""
    if request.is_oneway or last is None or last.code != ResponseCode.SUCCESS:
        return None
    return OnRequest(answer=request.answer(ResponseCode.SUCCESS, last.fields))


ON_REQUEST: Final[dict[str, RequestEffect]] = {
    "send_request_lost": _cut,
    "send_stored_twice": _twice,
    "send_busy": _refusal(ResponseCode.SYSTEM_BUSY),
    "send_unavailable": _refusal(ResponseCode.SERVICE_NOT_AVAILABLE),
    "pull_fewer": _fewer,
    "pull_busy": _refusal(ResponseCode.SYSTEM_BUSY),
    "commit_lost": _lose_commit,
    "offset_query_busy": _refusal(ResponseCode.SYSTEM_BUSY),
    "notification_lost": _vanish,
    "heartbeat_busy": _refusal(ResponseCode.SYSTEM_BUSY),
    "lock_refused": _no_lock,
    "send_back_busy": _refusal(ResponseCode.SYSTEM_BUSY),
    "end_of_transaction_lost": _vanish,
    "check_repeated": _repeat_check,
    "reply_late": _late,
    "route_missing": _no_route,
    "connection_cut": _cut,
    "sent_not_stored": _pretend,
}
"""The faults that are decided when the request arrives."""


def _lose(_: Firing, __: Command, ___: Command, ____: Command | None) -> OnAnswer:
    return OnAnswer(is_lost=True)


def _lose_stored(_: Firing, __: Command, answer: Command, ___: Command | None) -> OnAnswer | None:
    return OnAnswer(is_lost=True) if answer.code == ResponseCode.SUCCESS else None


def _delay(firing: Firing, _: Command, __: Command, ___: Command | None) -> OnAnswer:
    return OnAnswer(delay_ms=firing.delay_ms)


def _status(code: ResponseCode) -> AnswerEffect:
    def warn(_: Firing, __: Command, answer: Command, ___: Command | None) -> OnAnswer | None:
        if answer.code != ResponseCode.SUCCESS:
            return None
        return OnAnswer(replaced=msgspec.structs.replace(answer, code=code, remark=_REMARK))

    return warn


def _reorder(firing: Firing, _: Command, answer: Command, ___: Command | None) -> OnAnswer | None:
    if not _has_messages(answer):
        return None
    return OnAnswer(delay_ms=firing.delay_ms, after_answers=_OTHER_ANSWERS)


def _retry(_: Firing, request: Command, answer: Command, ___: Command | None) -> OnAnswer | None:
    if not _has_messages(answer):
        return None
    fields = {**answer.fields, "nextBeginOffset": request.fields.get("queueOffset", "")}
    retry = ResponseCode.PULL_RETRY_IMMEDIATELY
    return OnAnswer(
        replaced=msgspec.structs.replace(answer, code=retry, fields=fields, body=b"", remark=_REMARK)
    )


def _suggest_slave(_: Firing, __: Command, answer: Command, ___: Command | None) -> OnAnswer | None:
    if answer.fields.get("suggestWhichBrokerId", _SLAVE_ID) == _SLAVE_ID:
        return None
    fields = {**answer.fields, "suggestWhichBrokerId": _SLAVE_ID}
    return OnAnswer(replaced=msgspec.structs.replace(answer, fields=fields))


def _partial(firing: Firing, _: Command, answer: Command, __: Command | None) -> OnAnswer | None:
    if (
        answer.code != ResponseCode.SUCCESS
        or (body := without_a_broker(answer.body, firing.uniform("broker"))) is None
    ):
        return None
    return OnAnswer(replaced=msgspec.structs.replace(answer, body=body))


def _first_route(_: Firing, __: Command, answer: Command, first: Command | None) -> OnAnswer | None:
    if first is None or answer.code != ResponseCode.SUCCESS or first.body == answer.body:
        return None
    return OnAnswer(replaced=msgspec.structs.replace(answer, body=first.body))


# Unlawful faults.


def _skip(_: Firing, __: Command, answer: Command, ___: Command | None) -> OnAnswer | None:
    records = _records(answer)
    if len(records) < 3:
        return None
    return OnAnswer(replaced=msgspec.structs.replace(answer, body=b"".join(records[:1] + records[2:])))


def _reverse(_: Firing, __: Command, answer: Command, ___: Command | None) -> OnAnswer | None:
    records = _records(answer)
    if len(records) < 2:
        return None
    return OnAnswer(replaced=msgspec.structs.replace(answer, body=b"".join(reversed(records))))


def _again(_: Firing, __: Command, answer: Command, last: Command | None) -> OnAnswer | None:
    if last is None or not _has_messages(answer):
        return None
    return OnAnswer(replaced=msgspec.structs.replace(answer, body=last.body + answer.body))


def _forget(_: Firing, __: Command, answer: Command, ___: Command | None) -> OnAnswer | None:
    if answer.code != ResponseCode.SUCCESS or answer.fields.get("offset", "0") == "0":
        return None
    return OnAnswer(replaced=msgspec.structs.replace(answer, fields={**answer.fields, "offset": "0"}))


ON_ANSWER: Final[dict[str, AnswerEffect]] = {
    "send_answer_lost": _lose_stored,
    "send_answer_late": _delay,
    "send_answer_delayed": _delay,
    "flush_disk_timeout": _status(ResponseCode.FLUSH_DISK_TIMEOUT),
    "flush_slave_timeout": _status(ResponseCode.FLUSH_SLAVE_TIMEOUT),
    "slave_not_available": _status(ResponseCode.SLAVE_NOT_AVAILABLE),
    "pull_answer_lost": _lose,
    "pull_delayed": _delay,
    "queues_reordered": _reorder,
    "pull_retry": _retry,
    "slave_suggested": _suggest_slave,
    "send_back_answer_lost": _lose_stored,
    "route_stale": _first_route,
    "route_partial": _partial,
    "message_skipped": _skip,
    "queue_reordered": _reverse,
    "delivered_again": _again,
    "offset_forgotten": _forget,
}
"""The faults that are decided when the answer arrives."""

NEEDS_FIRST: Final = frozenset({"route_stale"})
"""The faults that compare an answer with the first one of its stream."""


def _has_messages(answer: Command) -> bool:
    return answer.code == ResponseCode.SUCCESS and bool(answer.body)


def _records(answer: Command) -> list[bytes]:
    """Return the records in the answer to a pull; none if they are not whole."""
    body, at, records = answer.body, 0, list[bytes]()
    if answer.code != ResponseCode.SUCCESS:
        return []
    while at < len(body):
        size = int.from_bytes(body[at : at + _SIZE_BYTES], "big")
        if not _SIZE_BYTES <= size <= len(body) - at:
            return []
        records.append(body[at : at + size])
        at += size
    return records


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() else None
