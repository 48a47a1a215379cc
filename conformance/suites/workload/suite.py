"""The workload suite of `mqproof conform`: clients of all kinds at once, while faults are injected.

Every rule judges their observations. An example is one send of each producer. There is one fault, and one
more for every twenty examples.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from mqproof.conformance.engine.fault_commands import FaultCommands
from mqproof.conformance.engine.fault_kinds import KINDS
from mqproof.conformance.engine.run_options import Part, RunOptions, RunOptionsError
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
"""Runs a workload on the target of this name, reports each stage, and returns the history.

Raises ValueError if there is no such target, TargetError if it cannot be driven.
"""
_EXAMPLES_PER_FAULT: Final = 20


def listed(options: RunOptions) -> tuple[Result, ...]:
    """Return the selected rules; they are selected by their own ids or by those of their invariants."""
    return tuple(Result(rule.id, rule.name, NAME, Verdict.NOT_TESTED) for rule in _rules(options))


def lines(options: RunOptions) -> Iterator[str]:
    for rule in _rules(options):
        yield f"{rule.id}  {NAME}  {rule.name}, of {rule.invariant}"


def run(options: RunOptions, progress: Callable[[int, int], None], play: Play) -> Part:
    """Run one workload with `play` and judge its history.

    The history is written to the events folder, if there is one.

    Raises:
        RunOptionsError, UnknownTargetError, TargetError.
    """
    began = time.perf_counter()
    workload = Workload(
        messages=options.examples, faults=1 + options.examples // _EXAMPLES_PER_FAULT, seed=options.seed
    )
    stages = 4 + workload.faults
    numbers = iter(range(1, stages))
    try:
        history = play(
            options.name_server, workload, lambda _: progress(next(numbers, stages), stages), options.controls
        )
    except UnknownTargetError:
        raise
    except ValueError as error:
        raise UnknownTargetError(str(error)) from None
    if options.events is not None:
        _keep(options, b"".join(map(encode, history)))
    seen = record(history)
    replay = options.replay(NAME, "--seed", str(options.seed), "--examples", str(options.examples))
    wanted = {rule.id for rule in _rules(options)}
    found = tuple(each for each in results(seen, NAME, replay) if each.id in wanted)
    looked_at = {"examples": options.examples, "operations": seen.operations}
    kinds = (KINDS.get(fault.value.kind) for fault in seen.faults)
    faults = Counter(kind for kind in kinds if kind)
    seconds = time.perf_counter() - began
    return Part(NAME, with_time(found, seconds), looked_at, seconds, faults=faults)


def _keep(options: RunOptions, history: bytes) -> None:
    assert options.events is not None
    try:
        options.events.mkdir(parents=True, exist_ok=True)
        (options.events / f"workload-{options.seed}.jsonl").write_bytes(history)
    except OSError as error:
        raise RunOptionsError(f"--events {options.events}: {error.strerror}") from None


def _rules(options: RunOptions) -> list[Rule]:
    return [rule for rule in RULES if options.chosen((rule.id, rule.invariant))]
