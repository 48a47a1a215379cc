"""Deliberately broken checks, with proof that the ground truth detects each of them.

A mutant replaces the findings of one check, mostly by hiding a part of the evidence from it, as real defects
of checks do. It must either miss an injected anomaly or raise a false alarm for a harmless fault; otherwise
the test data is too weak.
"""

import atexit
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import json

from mqproof.report.model import Result, Verdict, Witness
from mqproof.spark_audit.checks import CHECKS
from mqproof.spark_audit.checks.check import known_findings
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.engine.frames import Column
from mqproof.spark_audit.evidence.embedded_collect import embedded_collected
from mqproof.spark_audit.evidence.gaps import found_gaps
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.generator import cluster_log, scenario, store_directory
from mqproof.spark_audit.generator.generate import LogRequest, write_in_process
from mqproof.spark_audit.generator.truth import compare, read_truth
from mqproof.spark_audit.quality.trace_mutants import TRACE_MUTANTS
from mqproof.spark_audit.quality.trace_mutants import judge as judge_traces_mutant
from mqproof.spark_audit.schema import KEY
from mqproof.spark_audit.sources.embedded_read import read_embedded
from mqproof.spark_audit.sources.inputs import find_files
from mqproof.spark_audit.sources.store.embedded_stores import read_embedded_stores
from mqproof.spec.events import NUMBER_MAX

_EVENTS: Final = 24_000
_SEED: Final = 7
_UNBROKEN: Final = "unbroken"
_WITNESSES_MAX: Final = 4

Found = dict[str, Any]
"""A row of schema.FINDINGS."""


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    invariant: str
    description: str
    mutate: Callable[[Evidence], Evidence] | None = None
    """Changes the evidence that the check sees."""
    distort: Callable[[list[Found]], list[Found]] | None = None
    """Changes the findings of the check."""

    def findings(self, environment: "Environment") -> list[Found]:
        """Return the findings of the broken version of the catalogue's check."""
        found = environment.found[self.invariant]
        if self.mutate:
            found = _findings(self.invariant, self.mutate(environment.evidence))
        return self.distort(found) if self.distort else found


Change = str | Callable[[], Column]
"""A new value of a column: SQL that Spark and DuckDB read alike, or a function that returns the column."""


def _columns(changes: Mapping[str, Change]) -> dict[str, Column]:
    return {name: f.expr(change) if isinstance(change, str) else change() for name, change in changes.items()}


def _without(key: str) -> Column:
    return f.map_filter("attrs", lambda name, _: name != key)


def _attrs_of(kind: str, changed: Callable[[], Column]) -> Callable[[], Column]:
    """Return other attrs for one kind of events."""
    return lambda: f.when(f.col("kind") == kind, changed()).otherwise(f.col("attrs"))


def _with(key: str, value: str) -> Column:
    return f.map_concat(_without(key), f.create_map(f.lit(key), f.lit(value)))


def _messages(**columns: Change) -> Callable[[Evidence], Evidence]:
    """Replace columns of the message sums by SQL expressions."""

    def change(evidence: Evidence) -> Evidence:
        return replace(evidence, messages=evidence.messages.withColumns(_columns(columns)))

    return change


def _stored(**conditions: str) -> Callable[[Evidence], Evidence]:
    """Keep only some rows of the stores' tables."""

    def change(evidence: Evidence) -> Evidence:
        kept = {
            name: getattr(evidence.stored, name).where(condition) for name, condition in conditions.items()
        }
        return replace(evidence, store=replace(evidence.stored, **kept))

    return change


def _stored_columns(**tables: dict[str, str]) -> Callable[[Evidence], Evidence]:
    """Replace columns of the stores' tables by SQL expressions."""

    def change(evidence: Evidence) -> Evidence:
        changed = {
            name: getattr(evidence.stored, name).withColumns({c: f.expr(e) for c, e in columns.items()})
            for name, columns in tables.items()
        }
        return replace(evidence, store=replace(evidence.stored, **changed))

    return change


def _of_another_broker(place: Column) -> Column:
    """Return a place with another broker, if it is that of a copy."""
    kept = [place[name].alias(name) for name in ("topic", "queue_id", "queue_offset")]
    return f.struct(f.regexp_replace(place["broker"], "copied-1", "else").alias("broker"), *kept)


def _log_rows(condition: str) -> Callable[[Evidence], Evidence]:
    """Keep only some rows of the log."""
    return lambda evidence: replace(evidence, log=evidence.log.where(condition))


def _log(**columns: Change) -> Callable[[Evidence], Evidence]:
    """Replace columns of the log by SQL expressions."""

    def change(evidence: Evidence) -> Evidence:
        return replace(evidence, log=evidence.log.withColumns(_columns(columns)))

    return change


def _event_rows(condition: str) -> Callable[[Evidence], Evidence]:
    """Return a change of the evidence: only the events that meet the condition stay in its event tables."""
    return lambda evidence: replace(
        evidence,
        events=evidence.events.where(condition),
        failure_events=evidence.failure_events.where(condition),
    )


def _events(**columns: Change) -> Callable[[Evidence], Evidence]:
    """Replace columns of the events without attrs by SQL expressions."""

    def change(evidence: Evidence) -> Evidence:
        return replace(evidence, events=evidence.events.withColumns(_columns(columns)))

    return change


def _subscribed(expression: str) -> Callable[[Evidence], Evidence]:
    """Replace the expression of every subscription."""
    attrs = _attrs_of("subscribe", lambda: _with("expression", expression))
    return lambda evidence: replace(evidence, rare=evidence.rare.withColumn("attrs", attrs()))


def _without_sql(evidence: Evidence) -> Evidence:
    return replace(evidence, sql_selected=None)


def _endless_gaps(evidence: Evidence) -> Evidence:
    return replace(evidence, gaps=tuple(replace(gap, since=-NUMBER_MAX) for gap in evidence.gaps))


def _options(**changed: Any) -> Callable[[Evidence], Evidence]:
    return lambda evidence: replace(evidence, options=replace(evidence.options, **changed))


def _without_cause(cause: str) -> Callable[[Evidence], Evidence]:
    return lambda evidence: replace(evidence, causes=evidence.causes.where(f.col("cause") != cause))


_wide_skew: Final = _options(skew_us=10**12)


def _is_a_violation(cause: str) -> Callable[[list[Found]], list[Found]]:
    return lambda found: [row | {"cause": None} if row["cause"] == cause else row for row in found]


def _never(rule: str) -> Callable[[list[Found]], list[Found]]:
    return lambda found: [row for row in found if row["rule"] != rule]


MUTANTS: Final[dict[str, Mutant]] = {
    mutant.name: mutant
    for mutant in (
        Mutant("UnknownCountsAsAcked", "FLUSH-1", "treats an unknown outcome as SEND_OK",
               mutate=_messages(acked="acked + unknown")),
        Mutant("CutIgnored", "FLUSH-1", "ignores the records that recovery cut off",
               mutate=_messages(cut="0")),
        Mutant("CopiesAreKept", "FLUSH-1", "counts a slave's copy as a record of its master",
               mutate=_messages(acked_by=lambda: f.array().cast("array<string>"))),
        Mutant("AsyncHeldToSync", "FLUSH-1", "expects of ASYNC_FLUSH brokers what SYNC_FLUSH guarantees",
               distort=_is_a_violation("async_flush")),
        Mutant("NothingInDoubt", "FLUSH-3", "treats every bucket of a queue as clean",
               mutate=_stored(ambiguous="false")),
        Mutant("AnyRecordWillDo", "FLUSH-3", "does not check to which queue the record of an entry belongs",
               distort=_never("wrong-entry")),
        Mutant("ExpiredIsDangling", "FLUSH-3", "does not allow for expired segments",
               distort=_is_a_violation("expired")),
        Mutant("GapsForgiven", "FLUSH-4", "does not find missing offsets", distort=_never("cq-hole")),
        Mutant("FirstOfAnOffset", "FLUSH-4", "does not find an offset that is assigned twice",
               distort=_never("cq-offset-collision")),
        Mutant("DamageLeavesNoGap", "FLUSH-4", "reports the offset of a damaged record as missing",
               distort=_is_a_violation("damaged_record")),
        Mutant("DamageForgotten", "FLUSH-5", "ignores damaged records",
               mutate=_stored(gaps="kind <> 'damage'")),
        Mutant("TornTailIsDamage", "FLUSH-5", "does not allow for the torn last record of a killed broker",
               distort=_is_a_violation("torn_tail")),
        Mutant("TimesNotCompared", "FLUSH-5", "does not check store times", distort=_never("time-anomaly")),
        Mutant("GoneForGood", "FLUSH-5", "does not check whether truncated records are in the store again",
               mutate=_messages(cut="0")),
        Mutant("SecondAppendIgnored", "FLUSH-5", "does not allow for a second append of a message",
               mutate=_messages(appends="cut")),
        Mutant("CellsAgree", "REPL-2", "compares the positions of records, but not their contents",
               mutate=_stored_columns(records={"hashed": "0"})),
        Mutant("AheadIsForeign", "REPL-2", "does not allow for a master that loses the end of its log",
               distort=_is_a_violation("master_lost_tail")),
        Mutant("TopicsNotRead", "DELIV-1", "does not read topics.json", distort=_never("metadata-loss")),
        Mutant("QueueOfEntriesOnly", "FLUSH-6", "checks only records that have an entry",
               distort=_never("not-dispatched")),
        Mutant("LagIsLoss", "FLUSH-6", "does not allow for delayed dispatch",
               distort=_is_a_violation("dispatch_lag")),
        Mutant("IndexNotRead", "FLUSH-6", "does not read the index", mutate=_stored(index="false")),
        Mutant("AnyGroupWillDo", "DELIV-1", "is satisfied if any group received the message",
               mutate=_messages(acked="CASE WHEN deliveries > 0 THEN 0 ELSE acked END")),
        Mutant("InFlightIsLost", "DELIV-1", "reports messages that are still in flight as lost",
               distort=_is_a_violation("unseen")),
        Mutant("FiltersIgnored", "DELIV-1", "reports messages as lost that the group does not subscribe to",
               distort=_is_a_violation("filtered")),
        Mutant("ChangeIsLoss", "DELIV-1", "reports messages as lost that an earlier subscription left out",
               distort=_is_a_violation("subscription_changed")),
        Mutant("FiltersLoseAll", "DELIV-1", "accepts any loss in a group that subscribes by tag",
               mutate=_messages(tags="'no such tag'")),
        Mutant("SqlDecidesNothing", "DELIV-1", "does not evaluate SQL92 subscriptions",
               mutate=_without_sql),
        Mutant("GapsIgnored", "DELIV-1", "reports a message whose delivery the consumer dropped from its log",
               mutate=lambda evidence: replace(evidence, gaps=())),
        Mutant("GapsExplainAll", "DELIV-1", "accepts a loss long before the consumer dropped anything",
               mutate=_endless_gaps),
        Mutant("CopiesAreAhead", "DELIV-1", "treats a slave's copy as one that a group has not reached yet",
               mutate=_messages(places=lambda: f.transform("places", _of_another_broker))),
        Mutant("TruncationForgiven", "DELIV-1", "does not report records that recovery cut off",
               distort=_never("acked-then-truncated")),
        Mutant("StoreNotAsked", "DELIV-1", "treats an acknowledgement as proof that the message is stored",
               distort=_never("not-in-store")),
        Mutant("StrangersLost", "DELIV-1", "reports messages as lost whose broker's store was not given",
               distort=_is_a_violation("store_not_given")),
        Mutant("AnyOffsetWillDo", "DELIV-1", "ignores the ends of the queues",
               mutate=_stored(offsets="false")),
        Mutant("AppendIsASend", "DELIV-2", "treats a stored record as proof of a send",
               mutate=_messages(sends="sends + appends")),
        Mutant("OnlyAckedIsSent", "DELIV-2", "reports a delivery without an answer to its producer",
               distort=_is_a_violation("recovered")),
        Mutant("HiddenRetriesIgnored", "DELIV-3", "expects an event of every attempt of every client",
               distort=_is_a_violation("hidden_retry")),
        Mutant("AttemptsIgnored", "DELIV-3", "does not allow for retries of producers",
               mutate=_messages(attempt_max="1", sends="1")),
        Mutant("RebalanceIgnored", "DELIV-3", "does not allow for repeated deliveries after a rebalance",
               mutate=_without_cause("rebalance")),
        Mutant("GroupsAgreeAtOnce", "DELIV-3", "does not allow for two owners of a queue during a rebalance",
               mutate=_options(rebalance_us=0)),
        Mutant("GroupsNeverAgree", "DELIV-3", "accepts any earlier rebalance as the cause of two owners",
               mutate=_options(rebalance_us=10**12)),
        Mutant("AnyCauseEver", "DELIV-3", "accepts a cause that is hours away", mutate=_wide_skew),
        Mutant("NothingForgotten", "DELIV-3", "does not allow for repeated delayed messages after a crash",
               mutate=_without_cause("broker_crash")),
        Mutant("BrokersAreSure", "DELIV-3", "does not allow for a second append after an unknown outcome",
               mutate=_without_cause("broker_retry")),
        Mutant("LeadersAreSure", "DELIV-3", "does not allow for repeated appends by a new leader",
               mutate=_without_cause("leader_change")),
        Mutant("OffsetsNotCompared", "DELIV-3", "compares only repeated places",
               distort=_never("duplicate-offset")),
        Mutant("RestartIgnored", "DELIV-4", "does not allow for restarts of consumers",
               mutate=_without_cause("consumer_restart")),
        Mutant("KeptIsAStepBack", "DELIV-4", "does not allow for a message that could not be sent back",
               distort=_is_a_violation("redelivery")),
        Mutant("ThreadsIgnored", "DELIV-4", "expects the order of a queue from a listener in several threads",
               distort=_is_a_violation("several_threads")),
        Mutant("FilterIsAJump", "DELIV-4", "reports messages as skipped that the group does not subscribe to",
               mutate=_subscribed("*")),
        Mutant("FiltersSkipAll", "DELIV-4", "accepts any skipped offset in a group that subscribes by tag",
               mutate=_messages(tags="'no such tag'")),
        Mutant("JumpsIgnored", "DELIV-4", "finds only steps back", distort=_never("poll-skip")),
        Mutant("StepsBackIgnored", "DELIV-4", "finds only jumps", distort=_never("nonmonotonic-poll")),
        Mutant("DroppedStaysKnown", "ROUTE-1", "ignores the removal of a broker by a name server",
               mutate=_log_rows("kind NOT IN ('expire', 'unregister')")),
        Mutant("StartForgetsNothing", "ROUTE-1", "ignores the restart of a name server",
               mutate=_log_rows("kind <> 'recover' OR seq < 5")),
        Mutant("WritableWithoutAddress", "ROUTE-1", "checks only addresses",
               distort=_never("queue-without-broker")),
        Mutant("OwnTimesIgnored", "ROUTE-2", "does not allow for an expiry that a broker requested itself",
               mutate=_log(attrs=_attrs_of("register", lambda: _without("expiry_ms")))),
        Mutant("HangUpIsSilence", "ROUTE-2", "ignores the reason for which a broker was dropped",
               mutate=_log(attrs=_attrs_of("expire", lambda: _with("reason", "silent")))),
        Mutant("HeartbeatsUnheard", "ROUTE-3", "ignores heartbeats of brokers",
               mutate=_log_rows("kind <> 'heartbeat'")),
        Mutant("ChoiceNotAsked", "ROUTE-5", "does not check whether another broker was available",
               distort=_is_a_violation("no_choice")),
        Mutant("AnyCrashIsMild", "FLUSH-2", "treats every crash as a crash of the process only",
               distort=_is_a_violation("system_crash_possible")),
        Mutant("AnyRoleIsSync", "REPL-1", "expects of every master what SYNC_MASTER guarantees",
               mutate=_log(attrs=lambda: _with("role", "SYNC_MASTER"))),
        Mutant("StartsTellNoRole", "REPL-1", "knows only masters to which slaves connected",
               mutate=_log(attrs=_attrs_of("recover", lambda: _without("role")))),
        Mutant("LivesRunTogether", "REPL-1", "counts acknowledgements to an earlier life of the master",
               mutate=_log_rows("kind <> 'recover' OR seq = 0")),
        Mutant("AnyFlushWillDo", "REPL-3", "treats a flush of the queues as a flush of the log",
               mutate=_log(attrs=_attrs_of("flush", lambda: f.create_map(f.lit("file"), f.lit("log"))))),
        Mutant("EveryoneWaits", "REPL-3", "does not allow for producers that do not wait",
               mutate=_log(attrs=lambda: _without("wait"))),
        Mutant("AnsweredIsCommitted", "REPL-3", "does not check the commit position of a group",
               distort=_never("ok-before-commit")),
        Mutant("EntriesUnknown", "REPL-3", "does not map a message to its entry",
               mutate=_log(commit_offset="IF(kind = 'raft_append', NULL, commit_offset)")),
        Mutant("LedgersMixedUp", "RAFT-1", "treats all members with the same name as members of one ledger",
               mutate=_log(node="regexp_replace(node, '^(calm|torn|loss)-', '')")),
        Mutant("LeadsForEver", "RAFT-2", "ignores the end of a leadership",
               mutate=_log_rows("kind NOT IN ('heartbeat', 'step_down')")),
        Mutant("PlacesIgnored", "RAFT-3", "does not compare the positions of entries",
               mutate=_log(commit_offset="IF(kind = 'raft_append', NULL, commit_offset)")),
        Mutant("FirstOfATerm", "RAFT-3", "does not compare the previous entries",
               mutate=_log_rows("kind <> 'raft_append' OR attrs['index'] <> '2'")),
        Mutant("EntriesAgree", "RAFT-3", "compares positions of entries in stores, but not contents",
               mutate=_stored_columns(records={"hashed": "0"})),
        Mutant("TailsAgree", "RAFT-3", "does not allow for a different log end of an old leader",
               mutate=_stored_columns(records={"term": "IF(term IS NULL, NULL, 1)"})),
        Mutant("DamageDiverges", "RAFT-3", "treats damage as a different entry",
               distort=_is_a_violation("damaged_record")),
        Mutant("StartsWithNothing", "RAFT-4", "treats a log as empty after a start",
               mutate=_log(attrs=_attrs_of("recover", lambda: _with("index", "-1")))),
        Mutant("AnyEntryWillDo", "RAFT-4", "accepts an entry at the index of any term",
               mutate=_log(term="IF(kind = 'raft_append', 0, term)")),
        Mutant("CutsChangeNothing", "RAFT-5", "ignores truncations", distort=_never("committed-entry-cut")),
        Mutant("StartIsARegression", "RAFT-5", "does not allow for a restart without the commit position",
               mutate=_log_rows("kind <> 'recover' OR seq = 0")),
        Mutant("VotesOfOneLife", "RAFT-6", "forgets a vote after a restart of the node",
               mutate=_log_rows("kind <> 'vote' OR node <> 'torn-n2' OR seq > 1")),
        Mutant("TermsMayFall", "RAFT-6", "does not compare terms", distort=_never("term-goes-back")),
        Mutant("TurnsAreShares", "DELIV-6", "does not allow time for a group to agree on owners",
               mutate=_options(rebalance_us=-1)),
        Mutant("RebalancesIgnored", "DELIV-6", "ignores rebalances",
               mutate=_without_cause("rebalance")),
        Mutant("ReturnsUnheard", "DELIV-7", "ignores messages that were sent back",
               mutate=_event_rows("kind <> 'retry'")),
        Mutant("CommitNotAsked", "DELIV-7", "ignores a failed message that is retried in place",
               mutate=_event_rows("kind <> 'consume_ok'")),
        Mutant("DeadMayWalk", "DELIV-7", "ignores deliveries of dead letters",
               distort=_never("dead-letter-delivered")),
        Mutant("OneLevelForAll", "DELIV-8", "treats every delay level as the first",
               mutate=_options(delays_ms=(1000,) * 18)),
        Mutant("CopiesAreLetGo", "DELIV-8", "treats the append of a follower as a second release",
               mutate=_events(commit_offset="ascii(right(node, 1))")),
        Mutant("EventTimeIsStoreTime", "DELIV-8", "takes the time of the event as the time of storing",
               mutate=_log(attrs=lambda: f.map_filter("attrs", lambda _, __: f.lit(False)))),
        Mutant("CommittedLater", "DELIV-9", "accepts a commit that is recorded much later",
               mutate=_wide_skew),
        Mutant("RollbackUnheard", "DELIV-9", "ignores rollbacks",
               mutate=_event_rows("kind <> 'rollback'")),
        Mutant("OnePlaceIsEnough", "TXN-1", "does not compare the places of a message",
               mutate=_events(queue_offset="IF(topic = 'halves', 0, queue_offset)")),
        Mutant("RollbackIsNoEnd", "TXN-2", "ignores rollbacks", mutate=_event_rows("kind <> 'rollback'")),
        Mutant("EndsUnheard", "TXN-4", "ignores the ends of transactions",
               mutate=_event_rows("kind NOT IN ('commit', 'rollback')")),
        Mutant("RecallsMayFail", "TIMER-3", "takes every recall for one that failed",
               mutate=_events(status="IF(kind = 'recall', 'FLUSH_DISK_TIMEOUT', status)")),
        Mutant("EveryTagIsSelected", "DELIV-10", "takes every subscription for one to all messages",
               mutate=_subscribed("*")),
        Mutant("FirstSubscriptionStays", "DELIV-10", "ignores changes of a subscription",
               mutate=lambda evidence: replace(evidence, rare=evidence.rare.where(
                   "NOT (kind = 'subscribe' AND attrs['expression'] = 'B')"))),
        Mutant("SqlIsNotJudged", "DELIV-10", "accepts every delivery to a group that subscribes by SQL92",
               mutate=_without_sql),
        Mutant("NewestIsForEver", "DELIV-10", "judges all messages by the newest subscription",
               mutate=_subscribed("B")),
        Mutant("AnyMemberWillDo", "DELIV-11", "is satisfied if any member received the message",
               mutate=_messages(acked="CASE WHEN deliveries > 0 THEN 0 ELSE acked END")),
        Mutant("MembersAreStrangers", "DELIV-13", "does not compare the calls of different members",
               mutate=_event_rows("node <> 'ranked-1'")),
        Mutant("OneCallEnough", "DELIV-13", "does not check whether all messages of a batch are processed",
               mutate=_event_rows("kind <> 'consume_ok' OR msg_id <> 'lanes_1'")),
        Mutant("LocksLastForEver", "DELIV-13", "does not allow for expired locks",
               mutate=_options(lock_us=10**12)),
        Mutant("OnlyTheNamed", "DELIV-13", "ignores reports of groups that they consume in order",
               mutate=lambda evidence: replace(evidence, rare=evidence.rare.where("kind <> 'rebalance'"))),
        Mutant("HalvesAreSent", "DELIV-1", "expects the delivery of half messages",
               mutate=_messages(halves="0")),
        Mutant("WeakAcksPromise", "DELIV-1", "treats FLUSH_DISK_TIMEOUT as SEND_OK",
               distort=_is_a_violation("flush_disk_timeout")),
        Mutant("IdsAreUnique", "DELIV-3", "assumes that message ids of producers are unique",
               distort=_never("msgid-reused")),
        Mutant("AnyNumberIsAnOffset", "DELIV-5", "accepts negative offsets",
               distort=_never("negative-commit")),
        Mutant("CrashIgnored", "DELIV-5", "does not allow for lost commits after a crash",
               mutate=_without_cause("broker_crash")),
        Mutant("DeletedGroupContinues", "DELIV-5", "does not allow for deleted groups",
               mutate=_without_cause("group_deleted")),
        Mutant("DeletedTopicContinues", "DELIV-5", "does not allow for deleted topics",
               mutate=_without_cause("topic_deleted")),
        Mutant("ResetForbidden", "DELIV-5", "reports an explicit reset as a regression",
               distort=_is_a_violation("offset_reset")),
        Mutant("AnyCrashEver", "DELIV-5", "accepts any crash as the cause of any regression",
               mutate=_wide_skew),
    )
}  # fmt: skip
"""Maps a name to its mutant."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A log and stores with known results, whose evidence is gathered once for all mutants."""

    evidence: Evidence
    truth: list[dict[str, Any]]
    found: dict[str, list[Found]]
    """Findings of each unbroken check by catalogue id, computed once."""


@contextmanager
def open_environment() -> Iterator[Environment]:
    """Yield the environment of all checks, on the embedded engine."""
    with tempfile.TemporaryDirectory(prefix="mqproof-mutants-") as name:
        folder = Path(name)
        truth = _write_log(folder / "log")
        truth += store_directory.write_store(folder / store_directory.BROKER)
        truth += store_directory.write_slave(folder / "slave")
        truth += store_directory.write_members(folder)
        stores = {each: folder / each for each in (store_directory.BROKER, *store_directory.MEMBERS)}
        stores[store_directory.SLAVE] = folder / "slave"
        with closing(Database(folder)) as database, ExitStack() as opened:
            with active.embedded():
                log = read_embedded(database, find_files([str(folder / "log")]), folder)
                stored = read_embedded_stores(database, stores, store_directory.SLOTS)
                seen = opened.enter_context(embedded_collected(log, _OPTIONS, stored))
                evidence = replace(seen.evidence, gaps=found_gaps(seen.evidence.rare, seen.evidence.profile))
                found = {name: _findings(name, evidence) for name in CHECKS}
            yield Environment(evidence, truth, found)


_OPTIONS: Final = Options(broadcast=cluster_log.BROADCAST, orderly=cluster_log.ORDERLY)


def _write_log(log: Path) -> list[dict[str, Any]]:
    """Write a log with the injected anomalies, and all scripted ones, and return its truth."""
    write_in_process(LogRequest(_EVENTS, dict.fromkeys(scenario.ANOMALIES, 2), _SEED), log)
    script = cluster_log.events()
    rows = [*script.rows, *store_directory.events()]
    (log / "injected.ndjson").write_bytes(b"".join(json.encode(row) + b"\n" for row in rows))
    return read_truth(log) + script.truth


def names() -> tuple[str, ...]:
    """Return the mutants in the order of their invariants; those of traces come last."""
    return (*MUTANTS, *TRACE_MUTANTS)


def run(chosen: Sequence[str] = ()) -> Iterator[Result]:
    """Yield a result for each mutant, or each named one: HELD means that it was detected.

    The log is kept until the process ends, for the next call.
    """
    for name in chosen or names():
        if name in TRACE_MUTANTS:
            yield judge_traces_mutant(TRACE_MUTANTS[name])
        else:
            yield judge(MUTANTS[name], _own_environment())


def judge(mutant: Mutant, environment: Environment) -> Result:
    """Return HELD if the mutant's findings differ from the ground truth."""
    started = time.monotonic()
    with active.embedded():
        found = {mutant.invariant: mutant.findings(environment)}
    return _result(mutant.name, mutant.description, found, environment, started)


def unbroken(environment: Environment) -> Result:
    """Return the control result: the unbroken checks must agree exactly with the ground truth.

    Otherwise the detection of mutants proves nothing.
    """
    return _result(
        _UNBROKEN, "every check without a mutation", environment.found, environment, time.monotonic()
    )


@cache
def _own_environment() -> Environment:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(open_environment())


def _findings(invariant: str, evidence: Evidence) -> list[Found]:
    return [row.asDict() for row in known_findings(CHECKS[invariant], evidence).collect()]


def _result(
    name: str, description: str, findings: Mapping[str, list[Found]], environment: Environment, started: float
) -> Result:
    found = [row for rows in findings.values() for row in rows if row["cause"] is None]
    due = [row for row in environment.truth if row["invariant"] in findings]
    difference = compare(found, due)
    wrong = [("missed", key) for key in difference.missed]
    wrong += [("false alarm", key) for key in difference.false_alarms]
    if name == _UNBROKEN:
        good, outcome = difference.exact, "agrees" if difference.exact else "disagrees"
    else:
        good, outcome = not difference.exact, "survived" if difference.exact else "caught"
    return Result(
        id=next(iter(findings)),
        name=name,
        layer="audit",
        verdict=Verdict.HELD if good else Verdict.VIOLATED,
        counts={
            "injected": len(due),
            "missed": len(difference.missed),
            "false_alarms": len(difference.false_alarms),
        },
        witnesses=tuple(
            Witness(f"{what}: {dict(zip(KEY, key, strict=True))}") for what, key in wrong[:_WITNESSES_MAX]
        ),
        detail=f"{outcome}: {description}",
        replay="" if good else f"mqproof mutants --layer audit --only {name}",
        seconds=time.monotonic() - started,
    )
