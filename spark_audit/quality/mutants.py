"""Deliberately broken checks, with proof that the ground truth detects each of them.

A mutant replaces the findings of one check, mostly by hiding a part of the evidence from it, as real defects
of checks do. It must either miss an injected anomaly or raise a false alarm for a decoy; otherwise the test
data is too weak.
"""

import atexit
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import json
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from mqproof.report.model import Result, Verdict, Witness
from mqproof.spark_audit.checks import CHECKS
from mqproof.spark_audit.evidence.collect import collected
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.generator import cluster_log, scenario, store_directory
from mqproof.spark_audit.generator.generate import Wish, generate
from mqproof.spark_audit.generator.truth import compare, read_truth
from mqproof.spark_audit.quality.trace_mutants import TRACE_MUTANTS
from mqproof.spark_audit.quality.trace_mutants import judge as judge_traced
from mqproof.spark_audit.runtime.session import open_session
from mqproof.spark_audit.schema import KEY
from mqproof.spark_audit.sources.read import read
from mqproof.spark_audit.sources.store_tables import read_stores

EVENTS: Final = 24_000
_PLANTED: Final = 2
"""Number of each injected anomaly."""
_SEED: Final = 7
_UNBROKEN: Final = "unbroken"
_WITNESSES_MAX: Final = 4

Found = dict[str, Any]
"""A row of schema.FINDINGS."""


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    invariant: str
    story: str
    breaks: Callable[[Evidence], Evidence] | None = None
    """Changes the evidence that the check sees."""
    spoils: Callable[[list[Found]], list[Found]] | None = None
    """Changes the findings of the check."""

    def findings(self, lab: "Laboratory") -> list[Found]:
        """Return the findings of the broken version of the catalogue's check."""
        found = lab.found[self.invariant]
        if self.breaks:
            found = _collected(CHECKS[self.invariant].findings(self.breaks(lab.evidence)))
        return self.spoils(found) if self.spoils else found


def _messages(**columns: str) -> Callable[[Evidence], Evidence]:
    """Replace columns of the message sums by SQL expressions."""

    def change(evidence: Evidence) -> Evidence:
        changed = {name: f.expr(expression) for name, expression in columns.items()}
        return replace(evidence, messages=evidence.messages.withColumns(changed))

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


def _told(condition: str) -> Callable[[Evidence], Evidence]:
    """Keep only some rows of the log."""
    return lambda evidence: replace(evidence, log=evidence.log.where(condition))


def _log(**columns: str) -> Callable[[Evidence], Evidence]:
    """Replace columns of the log by SQL expressions."""

    def change(evidence: Evidence) -> Evidence:
        changed = {name: f.expr(expression) for name, expression in columns.items()}
        return replace(evidence, log=evidence.log.withColumns(changed))

    return change


def _heard(condition: str) -> Callable[[Evidence], Evidence]:
    """Keep only some of the events without attrs."""
    return lambda evidence: replace(
        evidence, events=evidence.events.where(condition), troubled=evidence.troubled.where(condition)
    )


def _events(**columns: str) -> Callable[[Evidence], Evidence]:
    """Replace columns of the events without attrs by SQL expressions."""

    def change(evidence: Evidence) -> Evidence:
        changed = {name: f.expr(expression) for name, expression in columns.items()}
        return replace(evidence, events=evidence.events.withColumns(changed))

    return change


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
        Mutant("UnknownCountsAsAcked", "FLUSH-1", "takes an unknown outcome for SEND_OK",
               breaks=_messages(acked="acked + unknown")),
        Mutant("CutIgnored", "FLUSH-1", "does not look at what recovery cut off", breaks=_messages(cut="0L")),
        Mutant("CopiesAreKept", "FLUSH-1", "takes a slave's copy for what its master kept",
               breaks=_messages(acked_by="CAST(array() AS ARRAY<STRING>)")),
        Mutant("AsyncHeldToSync", "FLUSH-1", "holds ASYNC_FLUSH brokers to the promise of SYNC_FLUSH",
               spoils=_is_a_violation("async_flush")),
        Mutant("NothingInDoubt", "FLUSH-3", "trusts every bucket of a queue",
               breaks=_stored(doubtful="false")),
        Mutant("AnyRecordWillDo", "FLUSH-3", "does not ask whose record an entry points at",
               spoils=_never("wrong-entry")),
        Mutant("ExpiredIsDangling", "FLUSH-3", "does not know that old segments expire",
               spoils=_is_a_violation("expired")),
        Mutant("GapsForgiven", "FLUSH-4", "does not see offsets left out", spoils=_never("cq-hole")),
        Mutant("FirstOfAnOffset", "FLUSH-4", "does not see an offset given twice",
               spoils=_never("cq-offset-collision")),
        Mutant("DamageLeavesNoGap", "FLUSH-4", "calls the offset of a damaged record left out",
               spoils=_is_a_violation("damaged_record")),
        Mutant("DamageForgotten", "FLUSH-5", "reads whole records only",
               breaks=_stored(gaps="kind <> 'damage'")),
        Mutant("TornTailIsDamage", "FLUSH-5", "does not know that a killed broker tears its last record",
               spoils=_is_a_violation("torn_tail")),
        Mutant("TimesNotCompared", "FLUSH-5", "does not look at store times", spoils=_never("time-anomaly")),
        Mutant("GoneForGood", "FLUSH-5", "does not ask whether what was cut off came back",
               breaks=_messages(cut="0L")),
        Mutant("SecondAppendIgnored", "FLUSH-5", "does not know that a message may be appended again",
               breaks=_messages(appends="cut")),
        Mutant("CellsAgree", "REPL-2", "compares where records begin, and not what they are",
               breaks=_stored_columns(records={"hashed": "0L"})),
        Mutant("AheadIsForeign", "REPL-2", "does not know that a master may lose its tail",
               spoils=_is_a_violation("master_lost_tail")),
        Mutant("TopicsNotRead", "DELIV-1", "does not look into topics.json", spoils=_never("metadata-loss")),
        Mutant("QueueOfEntriesOnly", "FLUSH-6", "looks at records that have an entry",
               spoils=_never("not-dispatched")),
        Mutant("LagIsLoss", "FLUSH-6", "does not know that dispatch runs behind",
               spoils=_is_a_violation("dispatch_lag")),
        Mutant("IndexNotRead", "FLUSH-6", "does not look into the index", breaks=_stored(index="false")),
        Mutant("AnyGroupWillDo", "DELIV-1", "is content when any group was handed the message",
               breaks=_messages(acked="CASE WHEN deliveries > 0 THEN 0 ELSE acked END")),
        Mutant("InFlightIsLost", "DELIV-1", "calls the tail that is still in flight lost",
               spoils=_is_a_violation("unseen")),
        Mutant("CopiesAreAhead", "DELIV-1", "takes a slave's copy for one that a group has yet to reach",
               breaks=_messages(places="transform(places, p -> struct(replace(p.broker, 'copied-1', 'else')"
                                       " AS broker, p.topic, p.queue_id, p.queue_offset))")),
        Mutant("TruncationForgiven", "DELIV-1", "does not report what recovery cut off",
               spoils=_never("acked-then-truncated")),
        Mutant("StoreNotAsked", "DELIV-1", "takes an acknowledgement for proof that the message is stored",
               spoils=_never("not-in-store")),
        Mutant("StrangersLost", "DELIV-1", "calls lost what brokers acknowledged whose stores are not there",
               spoils=_is_a_violation("store_not_given")),
        Mutant("AnyOffsetWillDo", "DELIV-1", "does not look where a queue ends",
               breaks=_stored(offsets="false")),
        Mutant("AppendIsASend", "DELIV-2", "takes a stored record as proof that it was sent",
               breaks=_messages(sends="sends + appends")),
        Mutant("OnlyAckedIsSent", "DELIV-2", "calls a delivery a phantom when its producer saw no answer",
               spoils=_is_a_violation("recovered")),
        Mutant("AttemptsIgnored", "DELIV-3", "does not know that producers try again",
               breaks=_messages(attempt_max="1", sends="1L")),
        Mutant("RebalanceIgnored", "DELIV-3", "does not know that a rebalance repeats deliveries",
               breaks=_without_cause("rebalance")),
        Mutant("GroupsAgreeAtOnce", "DELIV-3", "does not know that two may own a queue until a group agrees",
               breaks=_options(rebalance_us=0)),
        Mutant("GroupsNeverAgree", "DELIV-3", "lets a rebalance excuse two members however long ago it was",
               breaks=_options(rebalance_us=10**12)),
        Mutant("AnyCauseEver", "DELIV-3", "lets a cause explain what happened hours away", breaks=_wide_skew),
        Mutant("NothingForgotten", "DELIV-3", "does not know that a crash repeats what was delayed",
               breaks=_without_cause("broker_crash")),
        Mutant("BrokersAreSure", "DELIV-3", "does not know that a broker puts again what it is not sure of",
               breaks=_without_cause("broker_retry")),
        Mutant("LeadersAreSure", "DELIV-3", "does not know that a new leader puts again what another put",
               breaks=_without_cause("leader_change")),
        Mutant("OffsetsNotCompared", "DELIV-3", "looks at repeated places only",
               spoils=_never("duplicate-offset")),
        Mutant("RestartIgnored", "DELIV-4", "does not know that consumers restart",
               breaks=_without_cause("consumer_restart")),
        Mutant("KeptIsAStepBack", "DELIV-4", "does not know that a consumer keeps what it cannot send back",
               spoils=_is_a_violation("redelivery")),
        Mutant("JumpsIgnored", "DELIV-4", "sees steps back only", spoils=_never("poll-skip")),
        Mutant("StepsBackIgnored", "DELIV-4", "sees jumps only", spoils=_never("nonmonotonic-poll")),
        Mutant("DroppedStaysKnown", "ROUTE-1", "does not hear when a name server drops a broker",
               breaks=_told("kind NOT IN ('expire', 'unregister')")),
        Mutant("StartForgetsNothing", "ROUTE-1", "takes a name server that started again for one that ran on",
               breaks=_told("kind <> 'recover' OR seq < 5")),
        Mutant("WritableWithoutAddress", "ROUTE-1", "looks at addresses only",
               spoils=_never("queue-without-broker")),
        Mutant("OwnTimesIgnored", "ROUTE-2", "does not know that a broker may ask for a time of its own",
               breaks=_log(attrs="IF(kind = 'register', map_filter(attrs, (k, v) -> k <> 'expiry_ms'),"
                                 " attrs)")),
        Mutant("HangUpIsSilence", "ROUTE-2", "does not ask why a broker was dropped",
               breaks=_log(attrs="IF(kind = 'expire', map_concat(map_filter(attrs, (k, v) -> k <> 'reason'),"
                                 " map('reason', 'silent')), attrs)")),
        Mutant("HeartbeatsUnheard", "ROUTE-3", "hears of brokers only when they register",
               breaks=_told("kind <> 'heartbeat'")),
        Mutant("ChoiceNotAsked", "ROUTE-5", "does not ask whether there was another broker",
               spoils=_is_a_violation("no_choice")),
        Mutant("AnyCrashIsMild", "FLUSH-2", "takes every crash for one of the process",
               spoils=_is_a_violation("system_crash_possible")),
        Mutant("AnyRoleIsSync", "REPL-1", "holds every master to the promise of SYNC_MASTER",
               breaks=_log(attrs="map_concat(map_filter(attrs, (k, v) -> k <> 'role'),"
                                 " map('role', 'SYNC_MASTER'))")),
        Mutant("StartsTellNoRole", "REPL-1", "knows of masters only that slaves came to",
               breaks=_log(attrs="IF(kind = 'recover', map_filter(attrs, (k, v) -> k <> 'role'), attrs)")),
        Mutant("LivesRunTogether", "REPL-1", "lets what a slave told an earlier life of the master count",
               breaks=_told("kind <> 'recover' OR seq = 0")),
        Mutant("AnyFlushWillDo", "REPL-3", "takes a flush of the queues for one of the log",
               breaks=_log(attrs="IF(kind = 'flush', map('file', 'log'), attrs)")),
        Mutant("EveryoneWaits", "REPL-3", "does not know that a producer may not wait",
               breaks=_log(attrs="map_filter(attrs, (k, v) -> k <> 'wait')")),
        Mutant("AnsweredIsCommitted", "REPL-3", "does not ask how far a group has come",
               spoils=_never("ok-before-commit")),
        Mutant("EntriesUnknown", "REPL-3", "does not know in which entry a message is",
               breaks=_log(commit_offset="IF(kind = 'raft_append', NULL, commit_offset)")),
        Mutant("LedgersMixedUp", "RAFT-1", "takes members of one name for one ledger's",
               breaks=_log(node="regexp_replace(node, '^(calm|torn|loss)-', '')")),
        Mutant("LeadsForEver", "RAFT-2", "does not hear that a leader stopped",
               breaks=_told("kind NOT IN ('heartbeat', 'step_down')")),
        Mutant("PlacesIgnored", "RAFT-3", "does not compare where an entry stands",
               breaks=_log(commit_offset="IF(kind = 'raft_append', NULL, commit_offset)")),
        Mutant("FirstOfATerm", "RAFT-3", "does not compare what stands before an entry",
               breaks=_told("kind <> 'raft_append' OR attrs['index'] <> '2'")),
        Mutant("EntriesAgree", "RAFT-3", "compares of stores where entries stand, and not what they are",
               breaks=_stored_columns(records={"hashed": "0L"})),
        Mutant("TailsAgree", "RAFT-3", "does not know that an old leader's tail may be another",
               breaks=_stored_columns(records={"term": "IF(term IS NULL, NULL, 1L)"})),
        Mutant("DamageDiverges", "RAFT-3", "takes damage for another entry",
               spoils=_is_a_violation("damaged_record")),
        Mutant("StartsWithNothing", "RAFT-4", "does not know that a log survives a start",
               breaks=_log(attrs="IF(kind = 'recover', map_concat(map_filter(attrs, (k, v) -> k <> 'index'),"
                                 " map('index', '-1')), attrs)")),
        Mutant("AnyEntryWillDo", "RAFT-4", "asks for an entry at the index, of whatever term",
               breaks=_log(term="IF(kind = 'raft_append', 0, term)")),
        Mutant("CutsChangeNothing", "RAFT-5", "does not look at cuts", spoils=_never("committed-entry-cut")),
        Mutant("StartIsARegression", "RAFT-5", "does not know that a start discovers again what is committed",
               breaks=_told("kind <> 'recover' OR seq = 0")),
        Mutant("VotesOfOneLife", "RAFT-6", "forgets a vote when the node starts again",
               breaks=_told("kind <> 'vote' OR node <> 'torn-n2' OR seq > 1")),
        Mutant("TermsMayFall", "RAFT-6", "does not compare terms", spoils=_never("term-goes-back")),
        Mutant("TurnsAreShares", "DELIV-6", "does not know that a group needs time to agree on owners",
               breaks=_options(rebalance_us=-1)),
        Mutant("NobodyRebalances", "DELIV-6", "does not hear of rebalances",
               breaks=_without_cause("rebalance")),
        Mutant("ReturnsUnheard", "DELIV-7", "does not hear that a message went back",
               breaks=_heard("kind <> 'retry'")),
        Mutant("CommitNotAsked", "DELIV-7", "does not ask whether a failed message came again in place",
               breaks=_heard("kind <> 'consume_ok'")),
        Mutant("DeadMayWalk", "DELIV-7", "does not look at dead letters",
               spoils=_never("dead-letter-delivered")),
        Mutant("OneLevelForAll", "DELIV-8", "takes every level for the first",
               breaks=_options(delays_ms=(1000,) * 18)),
        Mutant("CopiesAreLetGo", "DELIV-8", "takes what a member copied for what it let go",
               breaks=_events(commit_offset="xxhash64(node)")),
        Mutant("ToldIsStamped", "DELIV-8", "takes a record to be stamped when its event is told",
               breaks=_log(attrs="CAST(map() AS MAP<STRING, STRING>)")),
        Mutant("CommittedLater", "DELIV-9", "lets a commit count that comes much later", breaks=_wide_skew),
        Mutant("RollbackUnheard", "DELIV-9", "does not hear of rollbacks",
               breaks=_heard("kind <> 'rollback'")),
        Mutant("AnyMemberWillDo", "DELIV-11", "is content when any member was handed the message",
               breaks=_messages(acked="CASE WHEN deliveries > 0 THEN 0 ELSE acked END")),
        Mutant("MembersAreStrangers", "DELIV-13", "does not compare one member's calls with another's",
               breaks=_heard("node <> 'ranked-1'")),
        Mutant("OneCallEnough", "DELIV-13", "does not ask whether all of a batch is done",
               breaks=_heard("kind <> 'consume_ok' OR msg_id <> 'lanes_1'")),
        Mutant("LocksLastForEver", "DELIV-13", "does not know that a lock expires",
               breaks=_options(lock_us=10**12)),
        Mutant("OnlyTheNamed", "DELIV-13", "does not hear which groups say that they consume in order",
               breaks=lambda evidence: replace(evidence, rare=evidence.rare.where("kind <> 'rebalance'"))),
        Mutant("HalvesAreSent", "DELIV-1", "does not know that a half message is owed to no group",
               breaks=_messages(halves="0L")),
        Mutant("WeakAcksPromise", "DELIV-1", "takes FLUSH_DISK_TIMEOUT for SEND_OK",
               spoils=_is_a_violation("flush_disk_timeout")),
        Mutant("IdsAreUnique", "DELIV-3", "believes that no two producers use one id",
               spoils=_never("msgid-reused")),
        Mutant("AnyNumberIsAnOffset", "DELIV-5", "does not know that offsets begin at 0",
               spoils=_never("negative-commit")),
        Mutant("CrashIgnored", "DELIV-5", "does not know that a crash loses the newest commits",
               breaks=_without_cause("broker_crash")),
        Mutant("ResetForbidden", "DELIV-5", "calls an explicit reset a regression",
               spoils=_is_a_violation("offset_reset")),
        Mutant("AnyCrashEver", "DELIV-5", "lets any crash explain any regression", breaks=_wide_skew),
    )
}  # fmt: skip
"""Maps a name to its mutant."""


@dataclass(frozen=True, slots=True)
class Laboratory:
    """A log and stores with known results, whose evidence is gathered once for all mutants."""

    evidence: Evidence
    truth: list[dict[str, Any]]
    found: dict[str, list[Found]]
    """Findings of each unbroken check by catalogue id, computed once."""


@contextmanager
def laboratory(spark: SparkSession) -> Iterator[Laboratory]:
    with tempfile.TemporaryDirectory(prefix="mqproof-mutants-") as folder:
        log, store = Path(folder) / "log", Path(folder) / "store"
        generate(spark, Wish(EVENTS, dict.fromkeys(scenario.ANOMALIES, _PLANTED), _SEED), log)
        stories, injected_truth = cluster_log.events(), store_directory.write_store(store)
        injected_truth += store_directory.write_slave(Path(folder) / "slave")
        injected_truth += store_directory.write_members(Path(folder))
        rows = [*stories.rows, *store_directory.events()]
        (log / "planted.ndjson").write_bytes(b"".join(json.encode(row) + b"\n" for row in rows))
        directories = {store_directory.BROKER: store, store_directory.SLAVE: Path(folder) / "slave"}
        directories |= {name: Path(folder) / name for name in store_directory.MEMBERS}
        events = read(spark, [str(log)], Path(folder)).told
        stored = read_stores(spark, directories, Path(folder), store_directory.SLOTS)
        options = Options(broadcast=cluster_log.BROADCAST, orderly=cluster_log.ORDERLY)
        with collected(events, options, stored) as seen:
            found = {name: _collected(check.findings(seen.evidence)) for name, check in CHECKS.items()}
            yield Laboratory(seen.evidence, read_truth(log) + stories.truth + injected_truth, found)


def names() -> tuple[str, ...]:
    """Return the mutants in the order of their invariants; those of traces come last."""
    return (*MUTANTS, *TRACE_MUTANTS)


def run(chosen: Sequence[str] = ()) -> Iterator[Result]:
    """Yield a result for each mutant, or each named one: HELD means that it was detected.

    Spark and the log are kept until the process ends, for the next call.

    Raises:
        SessionError: Spark did not start.
    """
    for name in chosen or names():
        if name in TRACE_MUTANTS:
            yield judge_traced(_own_session(), TRACE_MUTANTS[name])
        else:
            yield judge(MUTANTS[name], _own_laboratory())


def judge(mutant: Mutant, lab: Laboratory) -> Result:
    """Return HELD if the mutant's findings differ from the ground truth."""
    started = time.monotonic()
    return _judged(mutant.name, mutant.story, {mutant.invariant: mutant.findings(lab)}, lab, started)


def unbroken(lab: Laboratory) -> Result:
    """Return the control result: the unbroken checks must agree exactly with the ground truth.

    Otherwise the detection of mutants proves nothing.
    """
    return _judged(_UNBROKEN, "every check as it is", lab.found, lab, time.monotonic())


@cache
def _own_session() -> SparkSession:
    spark = open_session()
    atexit.register(spark.stop)
    return spark


@cache
def _own_laboratory() -> Laboratory:
    stack = ExitStack()
    spark = _own_session()
    atexit.register(stack.close)  # before the session ends
    return stack.enter_context(laboratory(spark))


def _collected(findings: DataFrame) -> list[Found]:
    return [row.asDict() for row in findings.collect()]


def _judged(
    name: str, story: str, findings: Mapping[str, list[Found]], lab: Laboratory, started: float
) -> Result:
    found = [row for rows in findings.values() for row in rows if row["cause"] is None]
    due = [row for row in lab.truth if row["invariant"] in findings]
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
            "planted": len(due),
            "missed": len(difference.missed),
            "false_alarms": len(difference.false_alarms),
        },
        witnesses=tuple(
            Witness(f"{what}: {dict(zip(KEY, key, strict=True))}") for what, key in wrong[:_WITNESSES_MAX]
        ),
        detail=f"{outcome}: {story}",
        replay="" if good else f"mqproof mutants --layer audit --name {name}",
        seconds=time.monotonic() - started,
    )
