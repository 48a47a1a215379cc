"""All suites and the way to run each one on a target; `mqproof conform` finds every suite here.

A suite and its targets are imported when the suite runs, so that a run loads only what it needs.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol

from mqproof.conformance.engine.coverage_feedback import CodeCoverage, Feedback, answers_seen, recorded
from mqproof.conformance.engine.examination import Examination
from mqproof.conformance.engine.finding import SPEC_1
from mqproof.conformance.engine.run_options import SINCE, Part, RunOptions, RunOptionsError
from mqproof.conformance.engine.suite_definition import Session, Suite, TargetFactory, known
from mqproof.conformance.engine.suite_results import results
from mqproof.conformance.engine.suite_run import OnExample, examine
from mqproof.conformance.engine.targets import (
    APACHE,
    STDIO,
    EndlessError,
    InternalError,
    TargetError,
    UnknownTargetError,
)
from mqproof.conformance.engine.time_bounds import BudgetInterrupt, budget
from mqproof.report.model import Result, Table, Verdict, Witness
from mqproof.spec.catalogue import catalogue
from mqproof.spec.events import encode

if TYPE_CHECKING:
    from mqproof.conformance.adapters.brokers.factories import Examinee
    from mqproof.conformance.traces.round_trip import Class

Progress = Callable[[int, int], None]
"""Called with (done, total), of examples or cases."""
Targets = AbstractContextManager[TargetFactory]


class Registered(Protocol):
    """A suite as seen by the command `conform`."""

    @property
    def about(self) -> str:
        """Return a short description for people."""
        ...

    def listed(self, options: RunOptions) -> tuple[Result, ...]:
        """Return the selected invariants or cases as results that are not tested yet."""
        ...

    def lines(self, options: RunOptions) -> Iterable[str]:
        """Return one line for each selected invariant or case, for a dry run."""
        ...

    def in_short(self, results: tuple[Result, ...]) -> tuple[Result, ...] | None:
        """Return fewer rows for people; None if the results are shown unchanged."""
        ...

    def run(self, options: RunOptions, progress: Progress) -> Part:
        """Run the suite with these options and return its part of the result.

        Raises UnknownTargetError, TargetError, RunOptionsError.
        """
        ...


@dataclass(frozen=True, slots=True)
class Drawn:
    """A suite whose examples Hypothesis draws."""

    about: str
    load: Callable[[], Suite]
    protocol: Callable[[], type[object]]
    """Returns the protocol of the suite's targets."""
    targets: Callable[[RunOptions], Targets]
    """Returns the targets of the name in the options, which run within the block. Raises as `run`."""

    def listed(self, options: RunOptions) -> tuple[Result, ...]:
        suite = self.load()
        return tuple(
            Result(each, catalogue()[each].name, suite.name, Verdict.NOT_TESTED)
            for each in options.chosen(known(suite))
        )

    def _targets(self, options: RunOptions) -> Targets:
        if not options.target.startswith(STDIO):
            return self.targets(options)
        from mqproof.conformance.adapters.stdio.adapter_proxy import stdio_targets

        if options.events is not None:
            raise RunOptionsError("--events: only the targets impl and mutant:NAME have a broker's event log")
        return stdio_targets(options.target, self.load().name, self.protocol())

    def lines(self, options: RunOptions) -> Iterator[str]:
        for each in self.listed(options):
            yield f"{each.id}  {each.layer}  {catalogue()[each.id].statement}"

    def in_short(self, results: tuple[Result, ...]) -> None:  # noqa: ARG002
        return None

    def run(self, options: RunOptions, progress: Progress) -> Part:
        suite = self.load()
        chosen = options.chosen(known(suite))
        wanted = frozenset(chosen) if options.ids else None
        with ExitStack() as stack:
            code = stack.enter_context(recorded(options.target, wanted=options.coverage))
            factory = stack.enter_context(self._targets(options))
            target = factory()
            examination = examine(
                factory, options.examples, options.seed, progress,
                suite=suite, wanted=wanted, shrink=options.shrink, on_example=_kept(options, suite.name),
                feedback=_feedback(options, code),
            )  # fmt: skip
        if SPEC_1 in examination.failures and SPEC_1 not in chosen:
            chosen += (SPEC_1,)
        words = ["--seed", str(options.seed), "--examples", str(options.examples)]
        words += [word for glob in options.ids for word in ("--id", glob)]
        found = results(
            examination, target, options.examples, options.seed,
            ids=chosen, replay=options.replay(suite.name, *words),
        )  # fmt: skip
        classed: dict[str, Class] = {}
        if examination.failures and options.shrink:
            from mqproof.conformance.traces.round_trip import classes, with_classes

            classed = classes(examination, options.events)
            found = with_classes(found, classed)
        looked_at = {
            "examples": examination.examples,
            "operations": examination.operations,
            "traces": sum(one.traces for one in classed.values()),
            "transitions": examination.actions.total(),
            **(examination.pairs.evidence() if examination.pairs else {}),
        }
        # A run that a violation ended early met few pairs, whatever the suite can do.
        pairs = examination.pairs if not examination.failures else None
        tables = (*_actions(examination), *(pairs.tables() if pairs else ()))
        return Part(
            suite.name, found, looked_at, examination.seconds, tables,
            faults=examination.faults, reached=code.reached if code else None,
        )  # fmt: skip


def _feedback(options: RunOptions, code: CodeCoverage | None) -> Feedback | None:
    """Return the function that says how much an example reaches, if the search should use one."""
    if not options.coverage:
        return None
    return code.branches if code else answers_seen


def _kept(options: RunOptions, suite: str) -> OnExample:
    """Return a function that writes the event logs of targets, if they are requested."""
    if (folder := options.events) is None:
        return lambda *_: None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunOptionsError(f"--events {folder}: {error.strerror}") from None

    def keep(number: int, session: Session) -> None:
        if events := getattr(session.target, "events", ()):
            (folder / f"{suite}-{number:05}.ndjson").write_bytes(b"".join(map(encode, events)))

    return keep


def _actions(examination: Examination) -> Iterator[Table]:
    """Yield a table of the actions; nothing for a run that explained nothing."""
    if actions := examination.actions.most_common():
        rows = tuple((name, str(count)) for name, count in actions)
        title = f"Actions of {examination.suite.model} that explain what was seen"
        yield Table(title, ("action", "times"), rows)


def conduct(options: RunOptions, name: str, progress: Progress) -> Part:
    """Run one suite and return its part of the scoreboard.

    If the suite has no such target, its results are not tested. If the target could not be driven, they are
    unknown. A run that never ends violates SPEC-1. A suite whose budget is used up judges the finished
    examples; one that draws none has no result.

    Raises RunOptionsError.
    """
    suite = SUITES[name]
    with budget(60 * options.minutes) as time_of_suite:
        try:
            part = _run(suite, options, name, progress)
        except BudgetInterrupt:
            unknown = tuple(replace(one, verdict=Verdict.UNKNOWN) for one in suite.listed(options))
            part = Part(name, unknown, {}, 60 * options.minutes, summary=suite.in_short(unknown))
    return _cut_short(part, options) if time_of_suite.is_used else part


def _cut_short(part: Part, options: RunOptions) -> Part:
    """Return the part with the reason why it has fewer examples."""
    cases = part.looked_at.get("cases")
    done = f"{part.looked_at.get('examples', 0)} of {options.examples} examples"
    if cases is not None:
        done = f"{cases} cases"
    why = f"the budget of {options.minutes:g} minutes ended the suite after {done}"
    results = tuple(replace(one, detail=f"{one.detail}; {why}".lstrip("; ")) for one in part.results)
    return replace(part, results=results)


def _run(suite: Registered, options: RunOptions, name: str, progress: Progress) -> Part:
    try:
        return suite.run(options, progress)
    except (EndlessError, InternalError) as error:
        why = "a run never ends" if isinstance(error, EndlessError) else "our own code failed"
        stopped = Result(
            SPEC_1, catalogue()[SPEC_1].name, name, Verdict.VIOLATED, {}, (Witness(str(error)),),
            why, options.replay(name, "--seed", str(options.seed)),
        )  # fmt: skip
        return Part(name, (stopped,), {}, 0.0)
    except (UnknownTargetError, TargetError) as error:
        verdict = Verdict.NOT_TESTED if isinstance(error, UnknownTargetError) else Verdict.UNKNOWN
        results = tuple(replace(one, verdict=verdict, detail=str(error)) for one in suite.listed(options))
        return Part(name, results, {}, 0.0, summary=suite.in_short(results), refusal=error)


# -- the suites, each with what it needs, imported when it is used


def _load_flush() -> Suite:
    from mqproof.conformance.suites.flush.suite import FLUSH

    return FLUSH


@contextmanager
def _flush_targets(options: RunOptions) -> Iterator[TargetFactory]:
    from mqproof.conformance.adapters.resolution import resolve

    if options.target.startswith(APACHE):
        from mqproof.conformance.adapters.apache_target import targets

        with targets(options.target) as factory:
            yield factory
    else:
        factory = resolve(options.name_server, options.controls)
        if options.events is not None and not hasattr(factory(), "events"):
            raise RunOptionsError("--events: only the targets impl and mutant:NAME have a broker's event log")
        yield factory


def _broker() -> type[object]:
    from mqproof.conformance.suites.flush.target import Target

    return Target


def _load_routing() -> Suite:
    from mqproof.conformance.suites.routing.suite import ROUTING

    return ROUTING


def _routing_targets(options: RunOptions) -> Targets:
    from mqproof.conformance.adapters.routing.name_servers import targets

    return targets(options.name_server, slave_speaks=options.since != SINCE[0], controls=options.controls)


def _name_server() -> type[object]:
    from mqproof.conformance.suites.routing.target import NameServerTarget

    return NameServerTarget


def _of_one_broker(name: str, about: str) -> Drawn:
    """Return a suite that sends requests to one broker, one of those in conformance/adapters/brokers."""

    def examinee() -> "Examinee":
        from mqproof.conformance.adapters.brokers.factories import EXAMINEES

        return EXAMINEES[name]

    return Drawn(
        about,
        lambda: examinee().suite,
        lambda: examinee().protocol,
        lambda options: examinee().targets(options.name_server, options.controls),
    )


def _load_producers() -> Suite:
    from mqproof.conformance.suites.producers.suite import PRODUCERS

    return PRODUCERS


def _producer_targets(options: RunOptions) -> Targets:
    from mqproof.conformance.adapters.producers.factories import targets

    return targets(options.target)


def _producer() -> type[object]:
    from mqproof.conformance.suites.producers.target import ProducerTarget

    return ProducerTarget


def _run_consumers(options: RunOptions, progress: Progress) -> Part:
    from mqproof.conformance.adapters.brokers.push_members import live
    from mqproof.conformance.suites.consumers.suite import run

    return run(options, progress, live)


def _run_replication(options: RunOptions, progress: Progress) -> Part:
    from mqproof.conformance.subjects.pair_run import live
    from mqproof.conformance.suites.replication.suite import run

    return run(options, progress, live)


def _run_dledger(options: RunOptions, progress: Progress) -> Part:
    from mqproof.conformance.adapters.apache import dledger_group
    from mqproof.conformance.subjects import group_run
    from mqproof.conformance.suites.dledger.suite import run

    is_released = options.target.startswith(APACHE)
    return run(
        options, progress, partial(dledger_group.live, options.target) if is_released else group_run.live
    )


def _run_convergence(options: RunOptions, progress: Progress) -> Part:
    from mqproof.conformance.subjects.convergence_run import live
    from mqproof.conformance.suites.convergence.suite import run

    return run(options, progress, live)


def _run_workload(options: RunOptions, progress: Progress) -> Part:
    from mqproof.conformance.adapters.workload import clusters
    from mqproof.conformance.suites.workload.suite import run

    return run(options, progress, clusters.run)


def _run_wire(options: RunOptions, progress: Progress) -> Part:
    from mqproof.conformance.adapters.wire_servers import servers
    from mqproof.conformance.wire.suite import run

    return run(options, progress, servers)


def _run_inspections(options: RunOptions, progress: Progress) -> Part:
    from mqproof.conformance.adapters.inspection_cases import run

    return run(options, progress)


def _run_hostile(options: RunOptions, progress: Progress) -> Part:
    from mqproof.conformance.adapters.victims import victims
    from mqproof.conformance.hostile.suite import run

    return run(options, progress, victims)


def _run_damage(options: RunOptions, progress: Progress) -> Part:
    from mqproof.conformance.adapters.damaged_brokers import brokers
    from mqproof.conformance.damage.suite import run
    from mqproof.conformance.engine.targets import IMPL, MUTANT
    from mqproof.conformance.subjects.damaged_peers import live, point

    is_ours = options.target == IMPL or options.target.startswith(MUTANT)
    return run(options, progress, brokers, (lambda number: live(point(number))) if is_ours else None)


@dataclass(frozen=True, slots=True)
class Undrawn:
    """A suite without drawn examples: a module with its functions."""

    about: str
    module: str
    play: Callable[[RunOptions, Progress], Part]
    is_long: bool = False
    """Whether the suite has many results, so that its module has `in_short`, which summarizes them."""

    def listed(self, options: RunOptions) -> tuple[Result, ...]:
        found: tuple[Result, ...] = import_module(self.module).listed(options)
        return found

    def lines(self, options: RunOptions) -> Iterable[str]:
        found: Iterable[str] = import_module(self.module).lines(options)
        return found

    def in_short(self, results: tuple[Result, ...]) -> tuple[Result, ...] | None:
        rows: tuple[Result, ...] | None = (
            import_module(self.module).in_short(results) if self.is_long else None
        )
        return rows

    def run(self, options: RunOptions, progress: Progress) -> Part:
        with recorded(options.target, wanted=options.coverage) as code:
            part = self.play(options, progress)
        return replace(part, reached=code.reached) if code else part


SUITES: Final[dict[str, Registered]] = {
    "flush": Drawn(
        "a broker and its store: sends, pulls, offsets, crashes", _load_flush, _broker, _flush_targets
    ),
    "routing": Drawn(
        "a name server: route registration and expiry", _load_routing, _name_server, _routing_targets
    ),
    "offsets": _of_one_broker("offsets", "pulls and consumer offsets"),
    "retry": _of_one_broker("retry", "retried and delayed messages, dead letters"),
    "delivery": _of_one_broker("delivery", "a consumer group: its members, and where each starts to read"),
    "ordering": _of_one_broker("ordering", "orderly consumption: a broker's queue locks"),
    "transactions": _of_one_broker(
        "transactions", "half messages, the ends of their transactions, and checks"
    ),
    "timers": _of_one_broker("timers", "messages that wait for a time, and their recalls"),
    "request_reply": _of_one_broker(
        "request_reply", "requests between clients, their replies and their errors"
    ),
    "admin": _of_one_broker("admin", "topics, groups, offsets and look-ups"),
    "producers": Drawn(
        "a producer: which queue it chooses, and which brokers it avoids",
        _load_producers,
        _producer,
        _producer_targets,
    ),
    "consumers": Undrawn(
        "our push consumers as the members of a group",
        "mqproof.conformance.suites.consumers.suite",
        _run_consumers,
    ),
    "replication": Undrawn(
        "a master of ours and its slave, with crashes and cut links",
        "mqproof.conformance.suites.replication.suite",
        _run_replication,
    ),
    "dledger": Undrawn(
        "a group that elects its leader, seen at the ports of its members",
        "mqproof.conformance.suites.dledger.suite",
        _run_dledger,
    ),
    "convergence": Undrawn(
        "the routes of a client, while brokers and name servers of ours stop and start",
        "mqproof.conformance.suites.convergence.suite",
        _run_convergence,
    ),
    "workload": Undrawn(
        "many clients at once, while faults are injected",
        "mqproof.conformance.suites.workload.suite",
        _run_workload,
    ),
    "wire": Undrawn(
        "numbered questions, request code by request code",
        "mqproof.conformance.wire.suite",
        _run_wire,
        is_long=True,
    ),
    "inspections": Undrawn(
        "our servers: every field of fixed sequences of requests",
        "mqproof.conformance.adapters.inspection_cases",
        _run_inspections,
        is_long=True,
    ),
    "hostile": Undrawn(
        "named attacks of a client without rights; runs only if it is named",
        "mqproof.conformance.hostile.suite",
        _run_hostile,
        is_long=True,
    ),
    "damage": Undrawn(
        "damaged files of a broker's store; runs only if it is named",
        "mqproof.conformance.damage.suite",
        _run_damage,
    ),
}
"""Maps the name given to `--suite` to the suite, in the order in which suites run."""

ON_REQUEST: Final = frozenset({"hostile", "damage"})
"""The suites that run only if `--suite` names them."""
