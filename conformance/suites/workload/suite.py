"""The suite workload of `mqproof conform`: clients of all kinds at once, while things are done to the broker.

Every rule judges what they saw. An example is a send of each producer; for twenty of them there is a fault.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from mqproof.conformance.engine.fault_commands import FaultCommands
from mqproof.conformance.engine.fault_kinds import KINDS
from mqproof.conformance.engine.run_options import Order, OrderError, Part
from mqproof.conformance.engine.suite_results import with_time
from mqproof.conformance.engine.targets import UnknownTargetError
from mqproof.conformance.history.judge import results
from mqproof.conformance.history.lines import Line, encode
from mqproof.conformance.history.record import record
from mqproof.conformance.history.rules import RULES, Rule
from mqproof.conformance.history.workload import Workload
from mqproof.report.model import Result, Verdict

NAME: Final = "workload"
Play = Callable[[str, Workload, Callable[[str], None], FaultCommands], list[Line]]
"""Runs a workload on the target of this name, reports each stage, and returns the history. Raises ValueError
when there is no such target, TargetError when it cannot be driven."""
_EXAMPLES_PER_FAULT: Final = 20


def listed(order: Order) -> tuple[Result, ...]:
    """The rules that are asked for, by their own ids or by those of the invariants that they stand for."""
    return tuple(Result(rule.id, rule.name, NAME, Verdict.NOT_TESTED) for rule in _rules(order))


def lines(order: Order) -> Iterator[str]:
    for rule in _rules(order):
        yield f"{rule.id}  {NAME}  {rule.name}, of {rule.invariant}"


def run(order: Order, progress: Callable[[int, int], None], play: Play) -> Part:
    """Judge the history of one workload that `play` runs; write it to the folder for events, if there is one.

    Raises:
        OrderError, UnknownTargetError, TargetError.
    """
    began = time.perf_counter()
    workload = Workload(
        messages=order.examples, faults=1 + order.examples // _EXAMPLES_PER_FAULT, seed=order.seed
    )
    stages = 4 + workload.faults
    told = iter(range(1, stages))
    try:
        history = play(
            order.name_server, workload, lambda _: progress(next(told, stages), stages), order.controls
        )
    except UnknownTargetError:
        raise
    except ValueError as error:
        raise UnknownTargetError(str(error)) from None
    if order.events is not None:
        _keep(order, b"".join(map(encode, history)))
    seen = record(history)
    replay = order.replay(NAME, "--seed", str(order.seed), "--examples", str(order.examples))
    wanted = {rule.id for rule in _rules(order)}
    found = tuple(each for each in results(seen, NAME, replay) if each.id in wanted)
    looked_at = {"examples": order.examples, "operations": seen.operations}
    kinds = (KINDS.get(fault.value.kind) for fault in seen.faults)
    faults = Counter(kind for kind in kinds if kind)
    seconds = time.perf_counter() - began
    return Part(NAME, with_time(found, seconds), looked_at, seconds, faults=faults)


def _keep(order: Order, history: bytes) -> None:
    assert order.events is not None
    try:
        order.events.mkdir(parents=True, exist_ok=True)
        (order.events / f"workload-{order.seed}.jsonl").write_bytes(history)
    except OSError as error:
        raise OrderError(f"--events {order.events}: {error.strerror}") from None


def _rules(order: Order) -> list[Rule]:
    return [rule for rule in RULES if order.chosen((rule.id, rule.invariant))]
