"""Message traces with known results, for tests of the trace readers and of their mutants.

Half of them are exported text, half are in a store that has the trace topic.
"""

from pathlib import Path
from typing import Final

from mqproof.impl.client.messages.compression import deflated
from mqproof.impl.remoting.message import Message
from mqproof.impl.store.files import record

TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
GROUP: Final = "readers"
UNREADABLE: Final = ("Pub\x01soon\x01", "no trace at all")

_BEGIN_MS: Final = 1_790_000_000_000
_SEGMENT_BYTES: Final = 16_384

SHOWN: Final[dict[str, dict[str, int]]] = {
    "DELIV-1": {
        "traced_due": 9, "traced_unseen": 1, "traced_in_flight": 1, "lost_min": 0, "lost_max": 1,
    },
    "DELIV-2": {"traced_delivered": 10, "traced_unsent": 1, "phantoms_min": 0, "phantoms_max": 1},
    "DELIV-3": {
        "traced_deliveries": 10, "traced_repeats": 1, "unexplained_min": 0, "unexplained_max": 1,
    },
    "DELIV-9": {"traced_transactions": 3, "rolled_back_and_visible": 1},
}  # fmt: skip
"""Counts that an audit must report, by invariant. Traces may lack records, so most counts are bounds."""
ABORTED: Final = "m_aborted"
"""Rolled back, but delivered."""


def write_traces(folder: Path) -> tuple[Path, Path]:
    """Write the store and the text file into the folder."""
    store, text = folder / "store", folder / "traces.txt"
    (store / "commitlog").mkdir(parents=True)
    log = b""
    for message in _messages():
        encoded = record.encode(message)
        record.place(encoded, 0, len(log), _BEGIN_MS)
        log += encoded
    (store / "commitlog" / f"{0:020}").write_bytes(log.ljust(_SEGMENT_BYTES, b"\0"))
    # In export format: one message a line, each record followed by its separator.
    lines = (f"{line}\x02{chr(10) if number % 3 == 2 else ''}" for number, line in enumerate(_exported()))
    text.write_text("".join(lines), encoding="utf-8")
    return store, text


def _exported() -> list[str]:
    return [
        _sent("m_seen", 0), _received("m_seen", 1), _done("m_seen", 1),
        # Older and newer releases write different numbers of fields.
        _sent("m_old", 2, tail=("true",)), _received("m_old", 4), _received("m_old", 5, times=1),
        _sent("m_unseen", 3, tail=("0A0B", "true", "10.0.0.7")),
        _sent("m_refused", 3, tail=("0A0B", "false")),
        _sent("m_of_batch,m_of_batch_too", 5), _received("m_of_batch", 6), _received("m_of_batch_too", 6),
        _received("m_unsent", 6), _received("m_unsent", 7),
        _sent("m_in_flight", 30),
        "Pop\x011\x012",
        *UNREADABLE,
    ]  # fmt: skip


def _messages() -> list[Message]:
    repeated = _message(_sent("m_reported_again", 6), _received("m_reported_again", 7))
    whole = deflated(_message(_sent("m_squeezed", 10), _received("m_squeezed", 11)))
    torn = Message(TOPIC, whole.body[:-1], {}, 0, sys_flag=whole.sys_flag)
    return [
        repeated,
        repeated,
        _message(_sent("m_committed", 9, half=True), _ended("m_committed", 10, "COMMIT_MESSAGE")),
        _message(_received("m_committed", 12), _sent("m_last", 13), _received("m_last", 20)),
        _message(_sent("m_rolled_back", 8, half=True), _ended("m_rolled_back", 9, "ROLLBACK_MESSAGE")),
        _message(
            _sent(ABORTED, 9, half=True), _ended(ABORTED, 10, "ROLLBACK_MESSAGE"), _received(ABORTED, 11)
        ),
        # A client compresses long traces, like any message.
        whole,
        torn,
        Message(TOPIC, b"\xff", {}, 0),
        Message("other", _received("m_other", 0).encode(), {}, 0),
    ]


def _message(*records: str) -> Message:
    return Message(TOPIC, "".join(f"{line}\x02" for line in records).encode(), {}, 0)


def _sent(msg_id: str, at_s: int, *, half: bool = False, tail: tuple[str, ...] = ("0A0B", "true")) -> str:
    place = ("10.0.0.1:10911", "4", "3", "1" if half else "0")
    return _line("Pub", _ms(at_s), "DefaultRegion", "p", "t", msg_id, "TagA", "k", *place, *tail)


def _received(msg_id: str, at_s: int, times: int = 0) -> str:
    return _line("SubBefore", _ms(at_s), "null", GROUP, f"r{at_s}", msg_id, str(times), "k")


def _done(msg_id: str, at_s: int) -> str:
    return _line("SubAfter", f"r{at_s}", msg_id, "2", "true", "k", "0")


def _ended(msg_id: str, at_s: int, state: str) -> str:
    sent = ("null", "p", "t", msg_id, "null", "null", "10.0.0.1:10911", "1")
    return _line("EndTransaction", _ms(at_s), *sent, "tx", state, "false")


def _ms(at_s: int) -> str:
    return str(_BEGIN_MS + at_s * 1000)


def _line(*fields: str) -> str:
    return "\x01".join(fields)
