"""Collects the evidence in an event log: the stages before the checks, in order.

Source -> plan -> profile -> the profile with earlier runs -> evidence.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from mqproof.spark_audit.evidence.collected import Collected, refuse_namesakes, without_repeats
from mqproof.spark_audit.evidence.gather import gather
from mqproof.spark_audit.evidence.groups import by_member
from mqproof.spark_audit.evidence.history import NO_HISTORY, ExaminedRows, History
from mqproof.spark_audit.evidence.log_pass import Keep, Passed, plan_buckets, sum_up
from mqproof.spark_audit.evidence.options import Options
from mqproof.spark_audit.evidence.places import name_broker
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes.bucket_plan import BucketPlan, guess
from mqproof.spark_audit.passes.profile import Overview, overview, summed_up
from mqproof.spark_audit.passes.times import NOTHING_SET_ASIDE, SetAside, plausible_times, set_aside
from mqproof.spark_audit.sources.event_log import EventLog
from mqproof.spark_audit.sources.store.stored import Stored

_PARALLEL: Final = 2
"""Number of tables built at a time: Spark plans one while it runs the other, and both take about as long."""

_FEW: Final = (
    "rare",
    "spans",
    "causes",
    "ambiguous_events",
    "messages",
    "failure_events",
    "steps",
    "profile",
)
"""Tables of the evidence that are small, unless much of the log needs exact checks."""

_SMALL: Final = 1_000_000
"""In logs of up to this number of events, every message is checked exactly."""

_SAMPLE_ROWS: Final = 250_000
"""In logs of more than twice this number of events, latencies are sampled from about this many."""
_SAMPLE_MAX: Final = 4096


@contextmanager
def collected(
    log: DataFrame | EventLog,
    options: Options | None = None,
    store: Stored | None = None,
    history: History = NO_HISTORY,
    *,
    pictures: bool = False,
    scratch: Path | None = None,
) -> Iterator[Collected]:
    """Collect the evidence in a log and in stores; tables that several checks read are cached until the end.

    Raises:
        InputError: two nodes have the same name, or times are not microseconds.
    """
    with ExitStack() as kept:

        def keep(frame: DataFrame) -> DataFrame:
            kept.callback(frame.unpersist)
            return frame.persist(StorageLevel.MEMORY_AND_DISK)

        source = _source(log, options or Options())
        folder = Path(kept.enter_context(TemporaryDirectory(prefix="mqproof-doubt-", dir=scratch)))
        plan = _planned(source, store, folder, pictures=pictures)
        own = _profiled(source.log, plan, keep)
        whole = _with_earlier(own, plan, history, keep)
        brokers = whole.overview.brokers
        evidence = replace(_gathered(whole, plan, store, keep), complete_from=whole.overview.complete_from)
        evidence = history.amend(evidence, own.log.rows, brokers)
        evidence = _kept(evidence, keep)
        examined = ExaminedRows(own.log, own.profile, own.overview, name_broker(whole.log.rows, brokers))
        yield Collected(evidence, whole.overview, own.repeated_rows, examined, own.set_aside)


@dataclass(frozen=True, slots=True)
class _Source:
    given: EventLog
    log: EventLog
    """The same log, with each member of a broadcast group as a group of its own."""
    options: Options


def _source(log: DataFrame | EventLog, options: Options) -> _Source:
    given = log if isinstance(log, EventLog) else EventLog.of(log)
    by_group = EventLog.of(by_member(given.rows, options.broadcast)) if options.broadcast else given
    return _Source(given, by_group, options)


@dataclass(frozen=True, slots=True)
class _Plan:
    options: Options
    """The options, completed from the log's size and ids."""
    buckets: BucketPlan | None
    """How messages are aggregated in buckets; None if every message is checked exactly."""
    folder: Path
    """The folder for the rows that are checked exactly."""


def _planned(source: _Source, store: Stored | None, folder: Path, *, pictures: bool) -> _Plan:
    rows, options = source.given.count(), source.options
    if pictures:
        options = replace(options, sample=max(1, min(_SAMPLE_MAX, rows // _SAMPLE_ROWS)))
    if options.exact is None:
        options = replace(options, exact=rows <= _SMALL)
    if options.exact and rows <= _SMALL:
        return _Plan(options, None, folder)
    expected, prefix = guess(source.given)
    options = replace(options, id_prefix=prefix)
    return _Plan(options, plan_buckets(source.given, options, store, expected, folder), folder)


@dataclass(frozen=True, slots=True)
class _Profiled:
    log: EventLog
    passed: Passed
    profile: DataFrame
    overview: Overview
    repeated_rows: int = 0
    set_aside: SetAside = NOTHING_SET_ASIDE


def _profiled(log: EventLog, plan: _Plan, keep: Keep) -> _Profiled:
    """Pass over the log; repeat the pass if some of its rows do not count."""
    first = _passed(log, plan, keep)
    if first.overview.newer_rows and log.files:
        # The rows that Spark reads from the files do not include these rows.
        first = _passed(EventLog.of(log.rows), plan, keep)
    aside = NOTHING_SET_ASIDE
    seen = first.overview
    if bounds := plausible_times(first.log.rows, seen.first_ts, seen.last_ts):
        aside = set_aside(first.log.rows, bounds)
        first = _passed(EventLog.of(first.log.rows.where(bounds.contain())), plan, keep)
    if not first.overview.repeated_rows:
        return replace(first, set_aside=aside)
    once = _passed(EventLog.of(without_repeats(first.log.rows)), plan, keep)
    refuse_namesakes(once.overview)
    return replace(once, repeated_rows=first.overview.rows - once.overview.rows, set_aside=aside)


def _passed(log: EventLog, plan: _Plan, keep: Keep) -> _Profiled:
    passed = sum_up(log, plan.buckets, keep)
    profiled = keep(summed_up(passed.profile_and_runs))
    return _Profiled(log, passed, profiled, overview(profiled))


def _with_earlier(own: _Profiled, plan: _Plan, history: History, keep: Keep) -> _Profiled:
    """Return this run's log and profile, joined with the state carried from earlier runs."""
    earlier = history.earlier(own.log.rows, own.profile, own.overview)
    if earlier is None:
        return own
    before = EventLog.of(earlier.rows)
    passed = own.passed.plus(sum_up(before, plan.buckets, keep))
    return _Profiled(own.log.plus(before), passed, earlier.profile, earlier.overview)


def _gathered(whole: _Profiled, plan: _Plan, store: Stored | None, keep: Keep) -> Evidence:
    seen = whole.overview
    # In a small log it is cheaper to read all of it again.
    exact_folder = plan.folder if plan.buckets or seen.rows > _SMALL else None
    for frame in (store.ambiguous, store.bounds) if store else ():
        keep(frame)
    return gather(
        whole.log, seen.brokers, plan.options, store, whole.passed, whole.profile, exact_folder, keep
    )


def _kept(evidence: Evidence, keep: Keep) -> Evidence:
    # The order matters: a table is planned without the caching of later ones.
    for frame in (evidence.ambiguous_events, evidence.messages, evidence.failure_events, evidence.steps):
        keep(frame)
    # After the count, Spark knows that they are few and broadcasts them, so the rows need no sort by message.
    evidence.ambiguous.count()
    return replace(evidence, **_cut_off(evidence))


def _cut_off(evidence: Evidence) -> dict[str, Any]:
    """Return the small tables, with their query plans cut off.

    With two dozen checks on top of them, planning would take most of an audit's time if the log is small.
    """
    if not str(evidence.log.sparkSession.sparkContext.master).startswith("local["):
        return {}  # A lost executor would lose the tables.

    def cut_off(name: str) -> DataFrame:
        kept: DataFrame = getattr(evidence, name).localCheckpoint(eager=False)
        return kept

    with ThreadPoolExecutor(_PARALLEL) as pool:
        return dict(zip(_FEW, pool.map(cut_off, _FEW), strict=True))
