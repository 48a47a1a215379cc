"""One run of a workload, and its history."""

from collections.abc import Callable
from typing import Final

from mqproof.conformance.engine.run_options import RunOptions, RunOptionsError
from mqproof.conformance.engine.targets import UnknownTargetError
from mqproof.conformance.history.lines import Line, encode
from mqproof.conformance.history.workload import Workload
from mqproof.conformance.suites.workload.target import Play

_EXAMPLES_PER_FAULT: Final = 10


def history(options: RunOptions, progress: Callable[[int, int], None], play: Play) -> list[Line]:
    """Run one workload with `play`, and return its history.

    The history is written to the events folder, if there is one.

    Raises:
        RunOptionsError, UnknownTargetError, TargetError.
    """
    workload = Workload(
        messages=options.examples, faults=2 + options.examples // _EXAMPLES_PER_FAULT, seed=options.seed
    )
    stages = 4 + workload.faults
    numbers = iter(range(1, stages))
    try:
        lines = play(
            options.name_server, workload, lambda _: progress(next(numbers, stages), stages), options.controls
        )
    except UnknownTargetError:
        raise
    except ValueError as error:
        raise UnknownTargetError(str(error)) from None
    if options.events is not None:
        _keep(options, b"".join(map(encode, lines)))
    return lines


def _keep(options: RunOptions, lines: bytes) -> None:
    assert options.events is not None
    try:
        options.events.mkdir(parents=True, exist_ok=True)
        (options.events / f"workload-{options.seed}.jsonl").write_bytes(lines)
    except OSError as error:
        raise RunOptionsError(f"--events {options.events}: {error.strerror}") from None
