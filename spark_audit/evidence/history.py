"""The contribution of earlier runs to an audit, and the state carried to the next run.

`History` itself is for a run without earlier ones. An incremental run overrides its methods
(incremental/continuation.py).
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.passes.profile import Overview

if TYPE_CHECKING:
    from mqproof.spark_audit.sources.event_log import EventLog


@dataclass(frozen=True, slots=True)
class ExaminedRows:
    """The rows that a run examined."""

    own: "EventLog | None"
    """The run's own log, without the rows of earlier runs, for the plots; None on the embedded engine."""
    profile: DataFrame
    """The profile of the run's own log."""
    overview: Overview
    """The overview of the run's own log."""
    log: DataFrame
    """The run's own rows and the carried ones, with `broker`."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The state of earlier runs at the beginning of a run."""

    rows: DataFrame
    """Their events that are examined again: schema.EVENTS."""
    profile: DataFrame
    """The profile of all runs, including this one."""
    overview: Overview
    """The overview of this run, with the brokers of all runs and only the new holes."""


class History:
    """The history of a single run: there are no earlier runs, and nothing is carried to a next one."""

    def earlier(self, rows: DataFrame, profile: DataFrame, overview: Overview) -> Earlier | None:
        """Return what earlier runs add to this run's rows, profile and overview."""
        del rows, profile, overview
        return None

    def amend(self, evidence: Evidence, rows: DataFrame, brokers: tuple[str, ...]) -> Evidence:
        """Return the evidence, corrected by the results of earlier runs. `rows` are this run's own."""
        del rows, brokers
        return evidence

    def only_new(self, found: DataFrame, scratch: Path, invariant: str) -> DataFrame:
        """Return the findings of a check that no earlier run had."""
        del scratch, invariant
        return found

    def close(
        self,
        evidence: Evidence,
        examined: ExaminedRows,
        brokers: tuple[str, ...],
        scratch: Path,
        ran: Collection[str],
    ) -> int:
        """Write the state for the next run, after the checks `ran`.

        Return the number of violations of earlier runs that this run has refuted.
        """
        del evidence, examined, brokers, scratch, ran
        return 0


NO_HISTORY = History()
