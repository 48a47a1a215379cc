"""The process of an adapter: a request is a line on its standard input, the answer a line on its output.

Each wait has a limit. An adapter that ends, is silent or answers nonsense has failed; it is ended, and every
later call fails with the same reason.
"""

import json
import os
import select
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from mqproof.conformance.adapters.stdio.wire_values import ValueMismatchError, from_json
from mqproof.conformance.engine.targets import (
    STDIO,
    AdapterFailedError,
    TargetError,
    UnknownTargetError,
)

PROTOCOL: Final = 1
OF_SUITE: Final = "suite"
"""The operations of the suite's target."""
BASIC: Final = "basic"
"""The operations of basic_operations."""
OPERATIONS: Final = (OF_SUITE, BASIC)
START_S: Final = 60.0
"""How long the answer to the first request may take. A Java process needs a few seconds."""
CALL_S: Final = 180.0
"""How long any other answer may take: a pull that waits, or a restart of the broker, takes long."""
LINE_BYTES_MAX: Final = 64 << 20
_STOP_S: Final = 5.0
_CHUNK: Final = 1 << 16
_STDERR_BYTES: Final = 300


class RefusedCallError(Exception):
    """The adapter answered with an error. `kind` is what the protocol calls it."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class _Error(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    message: str


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    id: int
    result: Any = msgspec.UNSET
    error: _Error | msgspec.UnsetType = msgspec.UNSET


class AdapterProcess:
    """A running adapter, started and ended by `with`."""

    def __init__(self, name: str, call_s: float = CALL_S) -> None:
        """`name` is the target `stdio:COMMAND`. The command is split into words, and no shell reads it.

        Raises:
            UnknownTargetError: there is no command, or its quotes are wrong.
        """
        try:
            self._words = shlex.split(name.removeprefix(STDIO))
        except ValueError as error:
            raise UnknownTargetError(f"{name!r}: {error}") from None
        if not self._words:
            raise UnknownTargetError(f"{name!r}: stdio:COMMAND expected")
        self.name = name
        self._call_s = call_s
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed by __exit__
        self._read = b""
        self._number = 0
        self._failure = ""

    def __enter__(self) -> Self:
        try:
            self._process = subprocess.Popen(
                self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, bufsize=0,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self._stderr.close()
            raise UnknownTargetError(f"{self.name!r}: {self._words[0]}: {error.strerror}") from None
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        assert process is not None, "started by __enter__"
        assert process.stdin is not None
        process.stdin.close()  # the adapter ends when its input ends
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_S)
        self._end()
        self._stderr.close()

    def hello(self, suite: str, constants: dict[str, Any]) -> tuple[list[Any], str]:
        """Greet the adapter for a suite. Returns its capabilities and its kind of operations.

        Raises:
            UnknownTargetError: it does not support the suite.
            AdapterFailedError: it failed, or speaks another protocol.
        """
        arguments = {"protocol": PROTOCOL, "suite": suite, "constants": constants}
        try:
            answer = self.call("hello", arguments, START_S)
        except RefusedCallError as error:
            if error.kind == "unsupported":
                raise UnknownTargetError(
                    f"{self.name!r} does not support the suite {suite}: {error}"
                ) from None
            raise TargetError(f"the adapter refuses the suite {suite}: {error}") from None
        if not isinstance(answer, dict) or answer.get("protocol") != PROTOCOL:
            raise self.failed(
                f"it answers hello with {_short(answer)}, an object with protocol {PROTOCOL} expected"
            )
        capabilities, operations = answer.get("capabilities", []), answer.get("operations", OF_SUITE)
        if answer.keys() - {"protocol", "capabilities", "operations"} or not isinstance(capabilities, list):
            raise self.failed(f"it answers hello with {_short(answer)}: protocol and capabilities expected")
        if operations not in OPERATIONS:
            expected = " or ".join(OPERATIONS)
            raise self.failed(f"it answers hello with operations {_short(operations)}, {expected} expected")
        return capabilities, operations

    def call(self, method: str, arguments: dict[str, Any], limit_s: float | None = None) -> Any:
        """Send a request and return the result in the answer.

        Raises:
            RefusedCallError: the answer is an error.
            AdapterFailedError: there is no answer, or it is not one of the protocol.
        """
        if self._failure:
            raise AdapterFailedError(self._failure)
        self._number += 1
        request = {"id": self._number, "method": method, "args": arguments}
        line = self._exchange(json.dumps(request).encode() + b"\n", method, limit_s or self._call_s)
        try:
            answer = msgspec.json.decode(line, type=_Answer)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            said = f"it answers {method} with {_short(line.decode(errors='replace'))}"
            raise self.failed(f"{said}, which is not an answer: {error}") from None
        if answer.id != self._number:
            raise self.failed(f"it answers {method} with id {answer.id}, {self._number} expected")
        if (answer.result is msgspec.UNSET) == (answer.error is msgspec.UNSET):
            raise self.failed(f"its answer to {method} has not exactly one of result and error")
        if not isinstance(answer.error, msgspec.UnsetType):
            raise RefusedCallError(answer.error.kind, _one_line(answer.error.message))
        return answer.result

    def failed(self, why: str) -> AdapterFailedError:
        """End the adapter, and return the error to raise. Later calls raise it, too."""
        self._end()
        self._failure = f"the adapter {shlex.join(self._words)} failed: {why}{self._complaint()}"
        return AdapterFailedError(self._failure)

    def _exchange(self, line: bytes, method: str, limit_s: float) -> bytes:
        """Write a line and read a line, in any order, so that neither side waits for the other."""
        process = self._process
        assert process is not None, "used inside `with`"
        assert process.stdin is not None
        assert process.stdout is not None
        until = time.monotonic() + limit_s
        unsent = memoryview(line)
        while b"\n" not in self._read:
            left_s = until - time.monotonic()
            writers = [process.stdin] if unsent else []
            readable, writable, _ = select.select([process.stdout], writers, [], max(0.0, left_s))
            if not readable and not writable and left_s <= 0:
                raise self.failed(f"no answer to {method} within {limit_s:.0f} s")
            if writable:
                try:
                    unsent = unsent[os.write(process.stdin.fileno(), unsent[:_CHUNK]) :]
                except BrokenPipeError:
                    raise self.failed(f"it ended before it read {method}{self._code()}") from None
            if readable:
                data = os.read(process.stdout.fileno(), _CHUNK)
                if not data:
                    raise self.failed(f"it ended without an answer to {method}{self._code()}")
                self._read += data
                if len(self._read) > LINE_BYTES_MAX:
                    raise self.failed(f"its answer to {method} is longer than {LINE_BYTES_MAX >> 20} MiB")
        answer, _, self._read = self._read.partition(b"\n")
        return answer

    def _code(self) -> str:
        assert self._process is not None
        try:
            return f" with exit code {self._process.wait(_STOP_S)}"
        except subprocess.TimeoutExpired:
            return ""

    def _end(self) -> None:
        """End the process and those that it started."""
        assert self._process is not None
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _complaint(self) -> str:
        """Return the end of what the adapter wrote to standard error, in one line."""
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _STDERR_BYTES))
        text = _one_line(self._stderr.read().decode(errors="replace"))
        return f"; it wrote: {text}" if text else ""


def _short(value: object) -> str:
    return repr(value)[:100]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def called(
    process: AdapterProcess,
    method: str,
    arguments: dict[str, Any],
    result: Any,
    kinds: Mapping[str, type[Exception]],
) -> Any:
    """Call a method of the adapter and return its result as a value of the type `result`.

    Raises:
        AdapterFailedError: the answer is not one of the protocol. Also the exception to which `kinds` maps
            the kind of a reported error.
    """
    try:
        answer = process.call(method, arguments)
    except RefusedCallError as error:
        kind = kinds.get(error.kind)
        if kind is None:
            expected = ", ".join(kinds)
            raise process.failed(f"{method}: error of kind {error.kind!r}, expected {expected}") from None
        raise kind(str(error)) from None
    except AdapterFailedError:
        if method == "close":
            return None  # the adapter is gone, and so is all that it held
        raise
    try:
        return from_json(answer, result, f"result of {method}")
    except ValueMismatchError as error:
        raise process.failed(str(error)) from None
