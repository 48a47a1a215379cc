"""An incremental run as the history of an audit: it continues from one state, and writes the next."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame
from mqproof.spark_audit.evidence.history import Earlier, ExaminedRows, History
from mqproof.spark_audit.evidence.places import name_broker
from mqproof.spark_audit.evidence.tables import Evidence
from mqproof.spark_audit.incremental.carried_state import (
    IDENTITY,
    NO_BATCH,
    Batch,
    CarriedState,
    renamed,
    same,
)
from mqproof.spark_audit.incremental.checkpoint import settle
from mqproof.spark_audit.incremental.state_folder import IncrementalRun
from mqproof.spark_audit.incremental.trend import record_run
from mqproof.spark_audit.judging.findings import FINDINGS_FOLDER, written, written_by
from mqproof.spark_audit.passes.profile import Overview

_FOUND: Final = "found"
"""Folder below a run's scratch folder with all findings of its checks, new or not."""


@dataclass(frozen=True, slots=True)
class Continuation(History):
    """The history of an audit that continues earlier runs."""

    run: IncrementalRun
    next_state: Path | None = None
    """The folder for the state that this run leaves; None if no run follows."""
    batch: Batch = NO_BATCH
    """The batch of a watch."""

    def earlier(self, rows: DataFrame, profile: DataFrame, overview: Overview) -> Earlier | None:
        """Return the contribution of earlier runs.

        Raises:
            InputError: rows of an earlier run are given again.
        """
        carried = self.run.carried
        if carried is None:
            return None
        whole, seen = carried.count(profile, overview)
        return Earlier(carried.needed_rows(rows, profile, seen.brokers), whole, seen)

    def amend(self, evidence: Evidence, rows: DataFrame, brokers: tuple[str, ...]) -> Evidence:
        carried = self.run.carried
        if carried is None:
            return evidence
        # The carried rows of messages are not all that a node reported; checks of its order need more.
        log = name_broker(carried.with_node_states(rows), brokers)
        return replace(carried.amend(evidence, brokers), log=log)

    def only_new(self, found: DataFrame, scratch: Path, invariant: str) -> DataFrame:
        carried = self.run.carried
        if carried is None:
            return found
        return _only_new(written(found, scratch / _FOUND / invariant), carried)

    def close(
        self,
        evidence: Evidence,
        examined: ExaminedRows,
        brokers: tuple[str, ...],
        scratch: Path,
        ran: Collection[str],
    ) -> int:
        carried = self.run.carried
        found = _all_found(evidence, scratch / (_FOUND if carried else FINDINGS_FOLDER), ran)
        refuted = _withdrawn(carried, found, ran) if carried else 0
        if self.next_state:
            settle(self.run, evidence, examined, brokers, found, ran, self.next_state, self.batch)
            record_run(self.run.before, self.next_state, self.run.number, examined.overview, refuted)
        return refuted


def _only_new(found: DataFrame, carried: CarriedState) -> DataFrame:
    """Return the findings that no earlier run had."""
    known = renamed(carried.findings.select(*IDENTITY), IDENTITY)
    return found.join(known, same(IDENTITY), "left_anti")


def _withdrawn(carried: CarriedState, found: DataFrame, invariants: Collection[str]) -> int:
    """Return how many violations of earlier runs this run refutes."""
    unsettled = carried.findings.where("cause IS NULL AND NOT final").where(
        f.col("invariant").isin(*invariants)
    )
    found_again = renamed(found.select(*IDENTITY), IDENTITY)
    return unsettled.join(found_again, same(IDENTITY), "left_anti").count()


def _all_found(evidence: Evidence, folder: Path, invariants: Collection[str]) -> DataFrame:
    """Return the findings of the checks of these invariants; each wrote them into its own folder."""
    return written_by(evidence.log.sparkSession, [folder / invariant for invariant in invariants])
