"""Broken variants of the guarantee model; spec/tla/mutants explains each bug under the same name."""

from dataclasses import replace
from functools import partial
from typing import Final

from mqproof.reference import guarantee
from mqproof.reference.guarantee import DOWN, MASTER, RUNNING, SLAVE, Config, State
from mqproof.reference.mutants.mutant import Mutant


def _ack_before_flush(config: Config, state: State, message: str) -> State | None:
    after = guarantee.answer_ok(config, replace(state, flushed=(len(state.log[MASTER]), 0)), message)
    return after and replace(after, flushed=state.flushed)


def _ack_before_replication(config: Config, state: State, message: str) -> State | None:
    after = guarantee.answer_ok(config, replace(state, reported=len(state.log[MASTER])), message)
    return after and replace(after, reported=state.reported)


def _report_before_append(config: Config, state: State) -> State | None:
    sent = replace(state, log=(state.log[MASTER], state.log[MASTER]))
    after = guarantee.report(config, sent)
    return after and replace(after, log=state.log)


def _pool_lost_with_process(config: Config, state: State, node: int) -> State | None:
    after = guarantee.process_crash(config, state, node)
    return after and replace(after, log=_cut(after, node))


def _cut(state: State, node: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the logs, with the node's log cut to its durable part."""
    master, slave = state.log
    kept = state.flushed[node]
    return (master[:kept], slave) if node == MASTER else (master, slave[:kept])


def _recovery_cuts_too_much(config: Config, state: State, node: int) -> State | None:
    after = guarantee.restart(config, state, node)
    return after and replace(after, log=_cut(state, node), flushed=state.flushed)


def _stop_drops_tail(config: Config, state: State, node: int) -> State | None:
    after = guarantee.clean_stop(config, replace(state, log=_cut(state, node)), node)
    return None if state.up[node] != RUNNING else after


def _busy_not_retried(config: Config, state: State, message: str) -> State | None:
    after = guarantee.give_up(config, replace(state, producer="async"), message)
    return after and replace(after, producer=state.producer)


def _overload_drops_oneway(config: Config, state: State, message: str) -> State | None:
    after = guarantee.append_record(config, state, message)
    return after and (replace(after, log=state.log) if state.producer == "oneway" else after)


def _slave_starts_empty(config: Config, state: State, node: int) -> State | None:
    """Make a slave that loses its master delete its store, to start over with the next master."""
    after = guarantee.machine_lost(config, state, node)
    if after is None or node == SLAVE or after.up[SLAVE] == DOWN:
        return after
    return replace(after, log=(after.log[MASTER], ()), flushed=(after.flushed[MASTER], 0))


_guarantee = partial(Mutant, guarantee.MODEL, config=Config())

MUTANTS: Final[tuple[Mutant, ...]] = (
    _guarantee("GuaranteeAckBeforeFlush", "SyncFlushSurvivesPower", "AnswerOk", _ack_before_flush),
    _guarantee("GuaranteeAckBeforeReplication", "SyncMasterSurvivesOne", "AnswerOk", _ack_before_replication),
    _guarantee("GuaranteeReportBeforeAppend", "SyncMasterSurvivesOne", "Report", _report_before_append),
    _guarantee(
        "GuaranteePoolLostWithProcess", "AckedSurvivesProcess", "ProcessCrash", _pool_lost_with_process
    ),
    _guarantee("GuaranteeRecoveryCutsTooMuch", "AckedSurvivesProcess", "Restart", _recovery_cuts_too_much),
    _guarantee("GuaranteeStopDropsTail", "CleanStopLosesNothing", "CleanStop", _stop_drops_tail),
    _guarantee("GuaranteeBusyNotRetried", "SyncSendStored", "GiveUp", _busy_not_retried),
    _guarantee("GuaranteeOverloadDropsOneway", "QuietLosesNothing", "AppendRecord", _overload_drops_oneway),
    _guarantee("GuaranteeSlaveStartsEmpty", "SlaveServesForMaster", "MachineLost", _slave_starts_empty),
)
