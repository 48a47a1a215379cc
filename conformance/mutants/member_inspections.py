"""Mutants that the inspections of group members, of masters and of their slaves detect."""

from collections.abc import Mapping
from typing import Any, Final

from mqproof.conformance.mutants.mutant import by_name, nothing, unexplained
from mqproof.impl.dledger.changes import Cut
from mqproof.impl.dledger.ledger import Ledger
from mqproof.impl.dledger.ledger_store import LedgerStore
from mqproof.impl.dledger.state import State
from mqproof.impl.replication.follow import Follow
from mqproof.impl.replication.record_repair import RecordRepair
from mqproof.impl.replication.stream import StreamError

_DLEDGER: Final = "mqproof.impl.dledger"
_REPLICATION: Final = "mqproof.impl.replication"
_next, _index_from, _round = Follow._next, Ledger.index_from, RecordRepair.round
_clean = LedgerStore.clean


def _no_wait(*_: object) -> float:
    return 0.0


def _always(*_: object) -> bool:
    return True


def _counted_of_the_slave_only(acks: Any, slave: object, position: int) -> None:
    acks._positions[slave] = position


def _at_each_look(receiver: Any) -> None:
    receiver._connection.write(receiver._follow.report())


def _in_one_transfer(follow: Any, at: int) -> int | None:
    before, size = follow._filler_left, _next(follow, at)
    if not before and follow._filler_left > len(follow._pending) - at:
        raise StreamError("a filler continues in the next transfer")
    return size


async def _without_successor(_: object) -> None:
    """Do nothing."""


def _one_earlier(ledger: Any, pos: int) -> int:
    found: int = max(ledger.begin_index, _index_from(ledger, pos) - 1)
    return found


async def _from_the_first(repair: Any) -> None:
    repair._first = 0
    await _round(repair)


def _leads_while_transferring(core: Any, now: float) -> bool:
    return bool(core._election.leads(now))


def _still_durable(state: State, end: int) -> None:
    state.terms.cut(end)
    state.changes.append(Cut(end))


def _no_fields(*_: object) -> dict[str, int]:
    return {}


async def _kept_by_a_quorum(store: LedgerStore, *, manually: bool = False) -> int:
    state = store.node.member.core.state
    state.kept_by_all = state.commit
    return await _clean(store, manually=manually)


INSPECTIONS: Final[Mapping[str, str]] = {
    "reads-during-a-transfer": "messages of a member",
    "better-log-not-awaited": "times of a member",
    "clients-wait-after-a-failure": "disks of a member",
    "any-index-in-a-file": "files of a member",
    "gaps-in-a-push": "messages of a member",
    "conflict-not-named": "messages of a member",
    "durable-after-a-cut": "messages of a member",
    "expired-before-copied": "masters in turn",
    "members-contradict": "membership settings",
    "entry-before-a-position": "drawn ledgers",
    "stop-without-successor": "stores of a group",
    "report-counts-while-connected": "slaves as shipped in 4.9",
    "master-without-heartbeats": "times of slaves",
    "report-at-each-look": "times of masters",
    "filler-in-one-transfer": "large fillers",
    "damaged-end-is-another-log": "short proved logs",
    "first-records-requested-again": "many repairs",
}
"""The inspection that detects each mutant."""

MUTANTS: Final = by_name(
    unexplained(
        "better-log-not-awaited", "a candidate does not wait for a member with a better log, or for a leader",
        f"{_DLEDGER}.election:Election._extra_wait", _no_wait,
    ),
    unexplained(
        "clients-wait-after-a-failure", "a member whose disk fails leaves its clients waiting",
        f"{_DLEDGER}.node:Node._fail_waiting", nothing,
    ),
    unexplained(
        "any-index-in-a-file", "the index and term of an entry in a file may have any value",
        f"{_DLEDGER}.entry_format:_check_place", nothing,
    ),
    unexplained(
        "gaps-in-a-push", "the entries of a push need not follow one another",
        f"{_DLEDGER}.log_replication:_follow_one_another", _always,
    ),
    unexplained(
        "members-contradict", "the settings of a member may contradict each other",
        f"{_DLEDGER}.config:Membership.__post_init__", nothing,
    ),
    unexplained(
        "entry-before-a-position", "the first entry from a position on is the one before it",
        f"{_DLEDGER}.ledger:Ledger.index_from", _one_earlier,
    ),
    unexplained(
        "reads-during-a-transfer", "a leader that transfers its leadership still reads for clients",
        f"{_DLEDGER}.core:Core.leads", _leads_while_transferring,
    ),
    unexplained(
        "conflict-not-named", "a follower does not say which entry it has in place of the leader's",
        f"{_DLEDGER}.log_replication:Following._conflict", _no_fields,
    ),
    unexplained(
        "durable-after-a-cut", "entries in the place of durable ones count as durable before their sync",
        f"{_DLEDGER}.state:State.cut", _still_durable,
    ),
    unexplained(
        "expired-before-copied", "old entries are deleted although a member lacks them",
        f"{_DLEDGER}.ledger_store:LedgerStore.clean", _kept_by_a_quorum,
    ),
    unexplained(
        "stop-without-successor", "a master that stops transfers its leadership to no member",
        f"{_DLEDGER}.ledger_store:LedgerStore.transfer_leadership", _without_successor,
    ),
    unexplained(
        "report-counts-while-connected", "as shipped, a report counts only while its slave is connected",
        f"{_REPLICATION}.acks:Acks.reported_as_shipped", _counted_of_the_slave_only,
    ),
    unexplained(
        "master-without-heartbeats", "a master sends no heartbeats", f"{_REPLICATION}.server:_Sender.beat",
        nothing,
    ),
    unexplained(
        "report-at-each-look", "a slave reports its position five times as often as configured",
        f"{_REPLICATION}.client:_Receiver.report", _at_each_look,
    ),
    unexplained(
        "filler-in-one-transfer", "a slave refuses a filler that continues in the next transfer",
        f"{_REPLICATION}.follow:Follow._next", _in_one_transfer,
    ),
    unexplained(
        "damaged-end-is-another-log", "a slave compares its log with damaged records of its master",
        f"{_REPLICATION}.feed:Feed._require_sound", nothing,
    ),
    unexplained(
        "first-records-requested-again", "of many damaged records, each round requests the first ones",
        f"{_REPLICATION}.record_repair:RecordRepair.round", _from_the_first,
    ),
)  # fmt: skip
"""The mutants by name."""
