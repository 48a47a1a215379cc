"""Numeric aggregates per message on the embedded engine: one query, with the meaning of message_sums.py."""

from typing import TYPE_CHECKING, Any

from mqproof.spark_audit.engine.sql_text import quoted
from mqproof.spark_audit.passes.message_columns import (
    NUMBERED,
    STORED_STATUSES,
    WAITING_TOPICS,
    is_of_message,
)
from mqproof.spark_audit.passes.message_judgement import judgement
from mqproof.spec.events import Kind

if TYPE_CHECKING:
    from mqproof.spark_audit.engine.frames import DataFrame


def judged_messages(
    events: Any, append_outcomes: Any, readers: Any, *, sampled: bool, return_all: bool = False
) -> "DataFrame":
    """Return the messages that may need an exact check, with the tallies of all (message_judgement.py).

    `events` is Evidence.events. With `sampled`, the result has every message, for the latencies; with
    `return_all`, too.
    """
    judged: DataFrame = events.sparkSession.query(
        judgement(str(sampled), return_all=return_all, source=f"({_SUMS})", readers="{readers}"),
        events=events,
        append_outcomes=append_outcomes,
        readers=readers,
    )
    return judged


def _count(condition: str) -> str:
    return f"count(*) FILTER ({condition})"


_OK, *_WEAK = STORED_STATUSES
_IS_ACK = f"kind = '{Kind.SEND_ACK}'"
_IS_FAIL = f"kind = '{Kind.SEND_FAIL}'"
_IS_APPEND = f"kind = '{Kind.APPEND}'"
_IS_SEND = f"kind = '{Kind.SEND}'"
_IS_DELIVERY = f"kind = '{Kind.DELIVER}'"

_COLUMNS = {
    "topic": f"""max({NUMBERED.format("topic")}) FILTER (NOT {_IS_DELIVERY} AND topic IS NOT NULL
        AND topic NOT IN ({quoted(*WAITING_TOPICS)}))""",
    "delivered_xor": f"bit_xor({NUMBERED.format(chr(34) + 'group' + chr(34))}) FILTER ({_IS_DELIVERY})",
    "send_ts": f"min(ts) FILTER ({_IS_SEND})",
    "acked_ts": f"min(ts) FILTER ({_IS_ACK} AND status = '{_OK}')",
    "stored_ts": f"min(ts) FILTER ({_IS_APPEND})",
    "delivered_ts": f"min(ts) FILTER ({_IS_DELIVERY})",
    "sends": _count(_IS_SEND),
    "acked": _count(f"{_IS_ACK} AND status = '{_OK}'"),
    "soft_acked": _count(f"{_IS_ACK} AND status IN ({quoted(*_WEAK)})"),
    "unknown": _count(f"{_IS_FAIL} AND status = 'unknown'"),
    "refused": _count(f"{_IS_FAIL} AND status <> 'unknown'"),
    "appends": _count(_IS_APPEND),
    "deliveries": _count(_IS_DELIVERY),
    "cut": _count("commit_offset >= kept_end"),
    "sync_at_risk": _count("is_at_risk"),
}

_SUMS = f"""
    SELECT msg_id, {", ".join(f"{text} AS {name}" for name, text in _COLUMNS.items())}
    FROM {{events}} AS e LEFT JOIN {{append_outcomes}} AS o
        ON {_IS_APPEND} AND node = cut_node AND seq > after_seq AND seq < until_seq
    WHERE {is_of_message()} GROUP BY msg_id"""
"""The sums of each message. An append has at most one outcome."""
