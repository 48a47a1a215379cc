"""Converts a finished audit into the report that all renderers show."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mqproof.report.model import Figure, Report, Table
from mqproof.report.printable import counted
from mqproof.spark_audit.checks.no_acked_lost import INVARIANT as NO_ACKED_LOST
from mqproof.spark_audit.checks.no_acked_lost import LOST, TRUNCATED
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.judging.outcome import Audit
from mqproof.spark_audit.judging.verdict import complete_since
from mqproof.spark_audit.passes.message_columns import STORED_STATUSES
from mqproof.spark_audit.passes.profile import Overview
from mqproof.spec.events import Kind

if TYPE_CHECKING:
    from mqproof.spark_audit.sources.embedded_read import EmbeddedLog
    from mqproof.spark_audit.sources.read import Log

_CORRUPT_SHOWN: Final = 10
_LINE_MAX: Final = 160
_NAMED: Final = 3
"""Maximum number of nodes with missing rows that are named."""

CAUSES: Final = {
    "async_flush": "acknowledged under ASYNC_FLUSH, lost in a crash: outside the guarantee",
    "damaged_record": "a damaged record is at this place, which RecoveredPrefix judges",
    "dispatch_lag": "not yet dispatched when the broker stopped; recovery does it",
    "expired": "its segment was deleted by age",
    "flush_disk_timeout": "its producer received FLUSH_DISK_TIMEOUT: outside the guarantee",
    "flush_slave_timeout": "its producer received FLUSH_SLAVE_TIMEOUT: outside the guarantee",
    "lock_expired": "the first call ran longer than its lock lasts, so it may have lost the lock",
    "leader_change": "its group got a new leader in between",
    "light_queue": "a light queue holds records of other topics",
    "master_lost_tail": "its master was killed and lost records that the slave still has",
    "no_choice": "no other broker is known to have been available",
    "not_recovered": "after the end of a log that was not shut down cleanly; recovery truncates it",
    "queues_reduced": "its topic has fewer queues now",
    "slave_crashed": "the slave was not shut down cleanly: only its page cache is guaranteed",
    "slave_not_available": "its producer received SLAVE_NOT_AVAILABLE: outside the guarantee",
    "store_not_given": "its broker's store was not given",
    "system_crash_possible": "no event shows that only a process died",
    "torn_tail": "the last write of a killed broker; recovery truncates it",
    "hidden_retry": "the client may repeat a send without an event",
    "several_threads": "the consumer's listener runs in several threads",
    "gap": "an event that a node dropped may explain it",
    "before_log": "it may have a cause from before the log of each node begins",
    "broker_crash": "the broker crashed or its group got a new leader in between",
    "broker_retry": "its broker did not receive the outcome of its replication in time",
    "consumer_restart": "the consumer restarted in between",
    "flush_mode_unknown": "lost in a crash of a broker that does not report its flush mode",
    "offset_reset": "the offset was reset",
    "producer_retry": "the producer sent it more than once",
    "rebalance_not_reported": "the group reports no rebalance, so the owners of its queues are unknown",
    "rebalance": "the group rebalanced in between",
    "recovered": "the producer did not receive the outcome; it was stored",
    "redelivery": "consumption failed and was retried",
    "two_owners": "its queue had two owners at once: a consequence, counted under DELIV-6",
    "unseen": "not yet delivered to the group when the log ends",
}
"""Maps the cause of a finding that is not a violation to a text."""


def summarise(
    audit: Audit,
    log: "Log | EmbeddedLog",
    stores: Mapping[str, Path],
    seconds: float,
    corrupt: list[tuple[str, str]],
    corrupt_rows: int,
) -> Report:
    """Return the report; `corrupt` has the first (file, line) of the rows that are not events."""
    seen, files, repeats = audit.overview, log.inputs.files, log.inputs.repeats
    of_stores = ("stored_records", "stored_bytes", "stored_queues", "queue_entries", "index_entries")
    facts = {
        **({"input": _input(log)} if files else {}),
        **{f"source {number}": line for number, line in enumerate(log.inputs.origins, start=1)},
        **{f"store of {name}": str(directory) for name, directory in stores.items()},
        **{name.replace("_", " "): str(audit.tallies[name]) for name in of_stores if stores},
        **({"files given twice": f"{len(repeats)} (counted once)"} if repeats else {}),
        "events": f"{seen.rows} of {len(seen.nodes)} nodes, {len(seen.brokers)} of them brokers",
        "span": f"{(seen.last_ts - seen.first_ts) / 1e6:.3f} s",
        "messages": f"{audit.tallies['messages']}, {audit.tallies['acked']} acknowledged with SEND_OK",
        "outcome unknown": f"{audit.tallies['unknown_outcome']} messages",
        "clocks": f"{audit.skew_us / 1000:g} ms apart are allowed, {audit.skew_seen_us / 1000:g} ms seen",
        "unreadable rows": f"{corrupt_rows}"
        + (" (below; --out keeps all of them, in the folder unreadable)" if corrupt_rows else ""),
        **({"unreadable traces": f"{audit.unreadable_traces}"} if audit.unreadable_traces else {}),
        "missing rows": _missing(seen),
        **({"dropped events": audit.gaps} if audit.gaps else {}),
        **({"begins late": complete_since(seen)} if seen.begun_late else {}),
        **(_set_aside(audit) if audit.set_aside_rows else {}),
        "rows collected twice": f"{audit.deduplicated_rows} (counted once)",
        "torn last lines": f"{log.torn_files} (the last write of a killed node)",
        "seconds": f"{seconds:.1f}, {seen.rows / seconds:.0f} events/s" if seconds else "0",
        **_engine(),
    }
    tables = [_losses(audit), _explained(audit), _kinds(audit)]
    if corrupt:
        tables.append(
            Table(
                f"Rows that are not events: {corrupt_rows}, the first {len(corrupt)}",
                ("file", "row"),
                tuple((Path(file).name, line[:_LINE_MAX]) for file, line in corrupt),
            )
        )
    shown = tuple(table for table in tables if table.rows)
    return Report("mqproof audit", audit.results, facts, shown, _figures(audit))


def _input(log: "Log | EmbeddedLog") -> str:
    files, origins = log.inputs.files, log.inputs.origins
    if origins:
        return f"{counted(len(files), 'file')}, with the sources that follow"
    return f"{counted(len(files), 'file')}, first {files[0]}"


def _engine() -> dict[str, str]:
    """Return the name and version of the engine."""
    if active.is_embedded():
        import duckdb

        return {"DuckDB": duckdb.__version__}
    import pyspark

    return {"Spark": pyspark.__version__}


def _figures(audit: Audit) -> tuple[Figure, ...]:
    if not audit.pictures:
        return ()
    # Imported late: the library that draws takes as long as the audit of a small log.
    from mqproof.spark_audit.reporting.plots import figures

    return figures(audit, CAUSES)


def _missing(seen: Overview) -> str:
    named = ", ".join(seen.holed_nodes[:_NAMED])
    more = f" and {len(seen.holed_nodes) - _NAMED} more" if len(seen.holed_nodes) > _NAMED else ""
    of_nodes = f" of {named}{more}: not all of their logs are given" if named else ""
    return f"{seen.missing_rows} (holes in the nodes' sequence numbers{of_nodes})"


def _set_aside(audit: Audit) -> dict[str, str]:
    shown = ", ".join(audit.set_aside)
    return {"implausible times": f"{counted(audit.set_aside_rows, 'row')}, set aside and not judged: {shown}"}


def _losses(audit: Audit) -> Table:
    """Return the losses by promised status. A message that two groups do not receive is counted twice."""
    of_losses = (result.counts for result in audit.results if result.id == NO_ACKED_LOST)
    violations = sum(counts.get(rule, 0) for counts in of_losses for rule in (LOST, TRUNCATED))
    outside: Counter[str] = Counter()
    for (invariant, _, cause), count in audit.explained.items():
        if invariant == NO_ACKED_LOST:
            outside[cause] += count
    tallies = audit.tallies
    rows = [("SEND_OK", tallies["acked"], violations, outside["async_flush"], outside["unseen"])]
    weak = [outside[status.lower()] for status in STORED_STATUSES[1:]]
    rows.append((" or ".join(STORED_STATUSES[1:]), tallies["soft_acked"], 0, sum(weak), 0))
    rows.append(("none: the outcome is unknown", tallies["unknown_outcome"], 0, 0, 0))
    columns = (
        "answer to the producer", "messages", "lost: violations", "lost outside the guarantee", "in flight",
    )  # fmt: skip
    shown = tuple((what, *map(str, counts)) for what, *counts in rows if any(counts))
    return Table("Losses, for each group that lacks a message", columns, shown)


def _explained(audit: Audit) -> Table:
    rows = tuple(
        (invariant, rule, str(count), CAUSES.get(cause, cause))
        for (invariant, rule, cause), count in sorted(audit.explained.items())
    )
    return Table(
        "Explained findings, which are not violations", ("invariant", "rule", "count", "because"), rows
    )


def _kinds(audit: Audit) -> Table:
    known = [kind for kind in Kind if kind in audit.overview.by_kind]
    return Table(
        "Events by kind",
        ("kind", "count"),
        tuple((kind, str(audit.overview.by_kind[kind])) for kind in known),
    )
