"""What OpenTelemetry spans show about messages: bounds of loss, messages never sent, and repeats.

Spans are sampled and exported in the background. Without sampling (a rate of 1, which the user states), every
span is there, and they decide. Otherwise loss is unknown, with bounds from the sampling rate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mqproof.report.model import Result, Verdict, Witness
from mqproof.spark_audit.engine.sql_text import quoted
from mqproof.spark_audit.sources.otel.sampling import lost_of_all, stated_rate
from mqproof.spark_audit.sources.otel.span_files import SpanCounts, load_spans
from mqproof.spec.catalogue import catalogue

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LAYER: Final = "spans"
SPANNED: Final = ("DELIV-1", "DELIV-2", "DELIV-3")
"""Invariants about which spans give information."""

_ANY: Final = "*"
_STATES_MAX: Final = 10_000
_WITNESSES_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class SpanOptions:
    """What the user states."""

    rate: float | None = None
    """The sampling rate; None: it is not stated."""
    skew_us: int = 100_000
    subscriptions: tuple[tuple[str, str, str], ...] = ()
    """Group, topic and tag expression, as for event logs."""


@dataclass(frozen=True, slots=True)
class JudgedSpans:
    results: tuple[Result, ...]
    counts: SpanCounts
    rate: float | None
    """The sampling rate by which the bounds were computed; None if it is unknown."""

    def line(self) -> str:
        rate = "not stated" if self.rate is None else f"{self.rate:g}"
        return (
            f"{self.counts.spans} of messages, {self.counts.without_id} without message id, "
            f"{self.counts.other} of other systems or operations; sampling rate {rate}"
            + (f"; {self.counts.unreadable_lines} unreadable lines" if self.counts.unreadable_lines else "")
        )


def judge_spans(files: Sequence[Path], scratch: Path, options: SpanOptions) -> JudgedSpans:
    """Return what the spans show. Raises InputError."""
    import duckdb

    with duckdb.connect() as database:
        database.execute(f"SET temp_directory = {quoted(str(scratch))}; SET TimeZone = 'UTC'")
        counts = load_spans(database, files)
        rate = options.rate if options.rate is not None else _stated(database)
        _create_messages(database, options)
        incomplete = counts.without_id + counts.unreadable_lines
        judge = _Judge(database, rate, incomplete)
        return JudgedSpans((judge.loss(), judge.phantoms(), judge.repeats()), counts, rate)


def _stated(database: "DuckDBPyConnection") -> float | None:
    rows = database.execute(
        f"SELECT DISTINCT trace_state FROM spans WHERE trace_state <> '' LIMIT {_STATES_MAX}"
    ).fetchall()
    return stated_rate(row[0] for row in rows)


def _create_messages(database: "DuckDBPyConnection", options: SpanOptions) -> None:
    """Create the tables `sent` of confirmed messages, `received` of deliveries to a group, and `due`."""
    database.execute(
        "CREATE TABLE sent AS SELECT message_id, max(topic) AS topic, max(tag) AS tag,"
        " greatest(max(coalesce(end_us, start_us)), coalesce(max(due_ms) * 1000, 0)) AS sent_us,"
        " list(DISTINCT trace_id) AS traces FROM spans"
        " WHERE operation = 'publish' AND NOT failed GROUP BY message_id"
    )
    # A push consumer has process spans, perhaps after receive spans; a pull consumer may have settle spans.
    processed = "count(*) FILTER (WHERE operation = 'process' AND NOT failed)"
    settled = (
        "count(*) FILTER (WHERE operation = 'settle' AND NOT failed"
        " AND coalesce(lower(operation_name) NOT IN ('nack', 'reject'), true))"
    )
    database.execute(
        "CREATE TABLE received AS SELECT message_id, consumers, CASE WHEN bool_or(operation = 'process')"
        f" THEN {processed} ELSE {settled} END AS successes,"
        " max(start_us) AS last_us, list(DISTINCT trace_id) AS traces, flatten(list(links)) AS links"
        " FROM spans WHERE operation <> 'publish' AND consumers IS NOT NULL GROUP BY message_id, consumers"
    )
    database.execute(
        "CREATE TABLE due AS SELECT s.*, g.consumers, r.successes IS NOT NULL AS seen,"
        f" r.successes IS NOT NULL OR s.sent_us + {options.skew_us} < g.last_us AS is_due,"
        f" {_selection(options.subscriptions)} AS selected,"
        " coalesce(list_has_any(s.traces, r.traces) OR list_has_any(s.traces, r.links), false) AS linked"
        " FROM sent AS s JOIN (SELECT topic, consumers, max(last_us) AS last_us"
        "  FROM received JOIN sent USING (message_id) GROUP BY ALL) AS g ON s.topic = g.topic"
        " LEFT JOIN received AS r ON r.message_id = s.message_id AND r.consumers = g.consumers"
    )


def _selection(subscriptions: Sequence[tuple[str, str, str]]) -> str:
    """Return whether the group's stated subscription selects the message; NULL if none is stated."""
    cases = []
    for group, topic, expression in sorted(subscriptions, key=lambda each: each[:2].count(_ANY)):
        named = [f"g.consumers = {quoted(group)}"] * (group != _ANY)
        named += [f"s.topic = {quoted(topic)}"] * (topic != _ANY)
        tags = [tag.strip() for tag in expression.split("||")]
        chosen = "true" if _ANY in tags else f"coalesce(s.tag IN ({quoted(*tags)}), false)"
        cases.append(f"WHEN {' AND '.join(named) or 'true'} THEN {chosen}")
    return f"CASE {' '.join(cases)} ELSE NULL END" if cases else "NULL::BOOLEAN"


@dataclass(frozen=True, slots=True)
class _Judge:
    database: "DuckDBPyConnection"
    rate: float | None
    incomplete: int
    """Spans and lines that may be about any message."""

    @property
    def is_whole(self) -> bool:
        return self.rate == 1 and not self.incomplete

    def loss(self) -> Result:
        rows = self.database.execute(
            "SELECT count(*), count(*) FILTER (WHERE NOT seen),"
            " count(*) FILTER (WHERE NOT seen AND selected IS NULL),"
            " count(*) FILTER (WHERE seen AND NOT linked)"
            " FROM due WHERE is_due AND (seen OR selected IS NOT false)"
        ).fetchall()
        due, unseen, unsure, unlinked = rows[0]
        in_flight = self._count("SELECT count(*) FROM due WHERE NOT is_due")
        low, high = self._lost(due, unseen, consistent=unlinked == 0)
        if unsure:
            low = 0  # each of them may have been filtered out
        counts = {
            "spanned_due": due, "spanned_unseen": unseen, "spanned_in_flight": in_flight,
            "lost_min": low, "lost_max": high,
        }  # fmt: skip
        if not due:
            return _result("DELIV-1", Verdict.UNKNOWN, counts, "no confirmed message was received by a group")
        text = f"between {low} and {high} of {self._of_all(due)} are lost"
        if not self.is_whole:
            return _result("DELIV-1", Verdict.UNKNOWN, counts, f"{text}; {self._why()}")
        if not unseen:
            return _result("DELIV-1", Verdict.HELD, counts, "")
        if unseen == unsure:
            why = "the group's subscription is not known: state it with --subscription"
            return _result("DELIV-1", Verdict.UNKNOWN, counts, f"{text}; {why}")
        return _result("DELIV-1", Verdict.VIOLATED, counts, text, self._lost_witnesses())

    def _lost(self, due: int, unseen: int, *, consistent: bool) -> tuple[int, int]:
        if self.rate is None:
            return 0, unseen
        if self.rate == 1:
            return (0 if self.incomplete else unseen), unseen
        return lost_of_all(unseen, due, self.rate, consistent=consistent)

    def _of_all(self, due: int) -> str:
        if self.rate is None:
            return f"{due} recorded messages"
        return f"{due} messages" if self.rate == 1 else f"about {round(due / self.rate)} messages"

    def _why(self) -> str:
        if self.rate is None:
            return "the sampling rate is not stated: give --sampling RATE, 1 for none"
        if self.rate < 1:
            return f"{self.rate:g} of the traces are sampled, bounds of 99% if no sampled span is missing"
        return f"{self.incomplete} spans or lines name no message"

    def _lost_witnesses(self) -> tuple[Witness, ...]:
        rows = self.database.execute(
            "SELECT message_id, topic, consumers FROM due WHERE is_due AND NOT seen AND selected"
            f" ORDER BY ALL LIMIT {_WITNESSES_MAX}"
        ).fetchall()
        return tuple(
            Witness(
                f"sent, and not received by group {group}: message {message} of topic {topic}",
                {"msg_id": message, "topic": topic, "group": group},
            )
            for message, topic, group in rows
        )

    def phantoms(self) -> Result:
        received, unsent = self.database.execute(
            "SELECT count(DISTINCT message_id), count(DISTINCT message_id) FILTER (WHERE message_id NOT IN"
            " (SELECT message_id FROM spans WHERE operation = 'publish')) FROM received"
        ).fetchall()[0]
        counts = {"spanned_received": received, "spanned_unsent": unsent}
        text = f"between 0 and {unsent} of {received} received messages were never sent"
        if received and not unsent and self.is_whole:
            return _result("DELIV-2", Verdict.HELD, counts, "")
        why = "their send may be earlier than the spans" if self.is_whole else self._why()
        return _result("DELIV-2", Verdict.UNKNOWN, counts, f"{text}; {why}" if received else "no delivery")

    def repeats(self) -> Result:
        received, repeats = self.database.execute(
            "SELECT count(*), count(*) FILTER (WHERE successes > 1) FROM received"
        ).fetchall()[0]
        counts = {"spanned_deliveries": received, "spanned_repeats": repeats}
        text = f"{repeats} of {received} deliveries were repeated after a success"
        if received and not repeats and self.is_whole:
            return _result("DELIV-3", Verdict.HELD, counts, "")
        why = "spans do not show the causes, such as a rebalance" if self.is_whole else self._why()
        return _result("DELIV-3", Verdict.UNKNOWN, counts, f"{text}; {why}" if received else "no delivery")

    def _count(self, query: str) -> int:
        return int(self.database.execute(query).fetchall()[0][0])


def _result(
    invariant: str,
    verdict: Verdict,
    counts: Mapping[str, int],
    detail: str,
    witnesses: tuple[Witness, ...] = (),
) -> Result:
    return Result(
        invariant,
        catalogue()[invariant].name,
        LAYER,
        verdict,
        dict(counts),
        witnesses,
        detail and f"by spans: {detail}",
    )
