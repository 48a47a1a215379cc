"""The options of a run of `mqproof conform`, and the part that each suite adds to the result."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from mqproof.conformance.engine.coverage_feedback import Reached
from mqproof.conformance.engine.fault_commands import FaultCommands
from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.targets import APACHE, REMOTING
from mqproof.conformance.engine.time_bounds import SUITE_MINUTES_MAX
from mqproof.report.model import Result, Table

SINCE: Final = ("4.9", "5")


def since_of(target: str) -> str:
    """Return the default for `since`: "4.9" for targets of Apache's 4.x line, otherwise the latest rules."""
    return SINCE[0] if target.startswith(f"{APACHE}4") else SINCE[-1]


class RunOptionsError(ValueError):
    """An option is used wrongly; the message names it."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of one run, for all of its suites."""

    target: str
    seed: int = 0
    examples: int = 100
    """The number of examples, for each suite that draws examples."""
    ids: tuple[str, ...] = ()
    """Patterns of invariant ids and wire cases; empty selects all."""
    since: str = SINCE[-1]
    """One of SINCE. Rules that a later release introduced are left out."""
    strict: bool = False
    """If true, a SHOULD that is not met is a failure."""
    events: Path | None = None
    """The folder for the event logs of targets that write one."""
    controls: FaultCommands = field(default_factory=FaultCommands)
    store: Path | None = None
    """The store directory of the broker, for suites that alter its files."""
    broker_log: Path | None = None
    """The log file of the broker, for suites that judge what it reports."""
    coverage: bool = False
    """If true, the search prefers examples that reach more, and executed lines of `impl/` are recorded."""
    minutes: float = SUITE_MINUTES_MAX
    """The real time after which a suite is ended; it judges the examples that are finished."""
    shrink: bool = True
    """If false, a suite ends with the first violation, and does not look for a shorter script."""

    @property
    def name_server(self) -> str:
        """The target's name for suites that find a broker through its name server.

        If `target` lists several addresses, the first one is the name server's; the others are left out.
        """
        return self.target.partition(",")[0] if self.target.startswith(REMOTING) else self.target

    def chosen(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Return the ids that the options select, in the given order."""
        return tuple(
            each for each in ids if not self.ids or any(fnmatchcase(each, glob) for glob in self.ids)
        )

    def replay(self, suite: str, *words: str) -> str:
        """Return the command that repeats the run for one suite."""
        command = ["mqproof", "conform", "--target", self.target, "--suite", suite]
        for name, template in self.controls.given():
            command += [f"--{name}", template]
        for option, path in (("--store", self.store), ("--broker-log", self.broker_log)):
            command += [option, str(path)] if path is not None else []
        if self.coverage:
            command.append("--coverage")
        if self.since != since_of(self.target):
            command += ["--since", self.since]
        return shlex.join([*command, *words])


@dataclass(frozen=True, slots=True)
class Part:
    """The results that one suite adds to the scoreboard."""

    suite: str
    results: tuple[Result, ...]
    looked_at: dict[str, int]
    """The evidence: names such as examples, operations or cases, to their numbers."""
    seconds: float
    tables: tuple[Table, ...] = ()
    summary: tuple[Result, ...] | None = None
    """The results summarized in fewer rows for display; None if they are shown unchanged."""
    refusal: Exception | None = None
    """The reason why the suite judged nothing."""
    reached: Reached | None = None
    """The lines of `impl/` that the suite executed; None if they were not recorded."""
    faults: Mapping[FaultKind, int] | None = None
    """How often each kind of fault was injected or observed; None if the suite has no faults."""
