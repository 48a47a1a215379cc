"""What a run of `mqproof conform` is asked for, and what each suite gives for it."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from mqproof.conformance.engine.fault_commands import FaultCommands
from mqproof.conformance.engine.fault_kinds import FaultKind
from mqproof.conformance.engine.targets import APACHE, REMOTING
from mqproof.report.model import Result, Table

SINCE: Final = ("4.9", "5")


def since_of(target: str) -> str:
    """What is asked of it where nobody says: of a line of Apache's its own rules."""
    return SINCE[0] if target.startswith(f"{APACHE}4") else SINCE[-1]


class RunOptionsError(ValueError):
    """A wrong use of an option; the message names it."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of one run, for all of its suites."""

    target: str
    seed: int = 0
    examples: int = 100
    """Of each suite that draws them."""
    ids: tuple[str, ...] = ()
    """Patterns of invariants and wire cases; none for all."""
    since: str = SINCE[-1]
    """Of SINCE: rules that a later release brought are left out."""
    strict: bool = False
    """A SHOULD that is not met fails."""
    events: Path | None = None
    """A folder for the event logs of targets that have one."""
    controls: FaultCommands = field(default_factory=FaultCommands)

    @property
    def name_server(self) -> str:
        """The target's name for those who find a broker by its name server, which is the first address."""
        return self.target.partition(",")[0] if self.target.startswith(REMOTING) else self.target

    def chosen(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Those of the ids that are asked for, in their order."""
        return tuple(
            each for each in ids if not self.ids or any(fnmatchcase(each, glob) for glob in self.ids)
        )

    def replay(self, suite: str, *words: str) -> str:
        """The command that asks one suite for the same once more."""
        command = ["mqproof", "conform", "--target", self.target, "--suite", suite]
        for name, template in self.controls.given():
            command += [f"--{name}", template]
        if self.since != since_of(self.target):
            command += ["--since", self.since]
        return shlex.join([*command, *words])


@dataclass(frozen=True, slots=True)
class Part:
    """What one suite adds to the scoreboard."""

    suite: str
    results: tuple[Result, ...]
    looked_at: dict[str, int]
    """The evidence: examples, operations, cases and the like, to their number."""
    seconds: float
    tables: tuple[Table, ...] = ()
    summary: tuple[Result, ...] | None = None
    """The results in fewer rows, for people; None: as they are."""
    refusal: Exception | None = None
    """Why nothing of it was judged."""
    faults: Mapping[FaultKind, int] | None = None
    """How often each was met; None where there are none to be met."""
