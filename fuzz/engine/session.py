"""One search in a worker process: its options, the messages it writes, and the input being executed."""

import mmap
import os
import time
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec

from mqproof.fuzz.engine.execution import Failure, judge
from mqproof.fuzz.engine.minimise import minimise
from mqproof.fuzz.target import ENDS_IN_TIME, Target

_PROGRESS_SECONDS: Final = 1.0
_MINIMISE_EXECUTIONS_MAX: Final = 3000
_MINIMISE_SECONDS_MAX: Final = 20.0
_SIZE_BYTES: Final = 4


class Options(msgspec.Struct, frozen=True):
    target: str
    seed: str
    seconds: float
    current: str
    """The file for the input that is being executed; created by `prepare_current`."""
    engine: str = "python"
    executions: int | None = None
    """Stop after this many executions, even if time is left."""
    corpus: str | None = None


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    executions: int
    features: int
    inputs: int
    checked: dict[str, int]


class Found(msgspec.Struct, frozen=True, tag="found"):
    invariant: str
    signature: str
    message: str
    input: bytes
    executions: int


Message = Progress | Found


class Session:
    """The common part of both engines: the time limit, the messages, and one report per defect."""

    def __init__(self, options: Options, target: Target, messages: int) -> None:
        self.options = options
        self.target = target
        self.executions = 0
        self._messages = messages
        self._seen: set[str] = set()
        self._end = time.monotonic() + options.seconds
        self._progress_at = 0.0
        with Path(options.current).open("r+b") as file:
            self._current = mmap.mmap(file.fileno(), 0)

    def over(self) -> bool:
        limit = self.options.executions
        return time.monotonic() >= self._end or (limit is not None and self.executions >= limit)

    def before(self, data: bytes) -> None:
        """Record the input that is about to be executed."""
        self._current[: _SIZE_BYTES + len(data)] = len(data).to_bytes(_SIZE_BYTES, "big") + data

    def after(self, data: bytes, failure: Failure | None, features: int, inputs: int) -> None:
        """Record that an input was executed, and report its failure if it is new."""
        self.executions += 1
        if failure is not None and failure.signature not in self._seen:
            self._seen.add(failure.signature)
            self._report(data, failure)
            self.report_progress(features, inputs)
        if time.monotonic() >= self._progress_at:
            self.report_progress(features, inputs)

    def report_progress(self, features: int, inputs: int) -> None:
        """Report the progress of the search."""
        self._progress_at = time.monotonic() + _PROGRESS_SECONDS
        self._send(Progress(self.executions, features, inputs, dict(self.target.checked)))

    def _report(self, data: bytes, failure: Failure) -> None:
        executions = self.executions
        # Reported before minimising, so that the report exists even if the worker is killed during it.
        self._send(Found(failure.invariant, failure.signature, failure.message, data, executions))
        if failure.invariant == ENDS_IN_TIME:
            return  # each attempt to minimise would take as long
        checked = Counter(self.target.checked)
        give_up = time.monotonic() + _MINIMISE_SECONDS_MAX

        def fails(candidate: bytes) -> bool:
            if time.monotonic() > give_up:
                return False
            self.before(candidate)
            again = judge(self.target, candidate)
            return again is not None and again.signature == failure.signature

        small = minimise(data, fails, _MINIMISE_EXECUTIONS_MAX)
        message = judge(self.target, small) or failure
        self.target.checked.clear()
        self.target.checked.update(checked)
        self._send(Found(failure.invariant, failure.signature, message.message, small, executions))

    def _send(self, message: Message) -> None:
        view = memoryview(msgspec.json.encode(message) + b"\n")
        while view:
            view = view[os.write(self._messages, view) :]


def prepare_current(path: Path, input_bytes_max: int) -> None:
    """Create the file in which a worker keeps the input that it executes."""
    path.write_bytes(bytes(_SIZE_BYTES + input_bytes_max))


def read_current(path: Path) -> bytes:
    """Return the input that the worker was executing when it ended."""
    content = path.read_bytes()
    return content[_SIZE_BYTES:][: int.from_bytes(content[:_SIZE_BYTES], "big")]
