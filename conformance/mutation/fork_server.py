"""Judges each mutant in a process of its own, without importing everything for each one.

`python -m mqproof.conformance.mutation.fork_server` imports the suites and `impl/` once. It reads Tasks as
lines of JSON, and forks for each one; the child replaces the changed function and judges. A change that only
a new import shows, such as that of a constant, is judged by a new process. A line of JSON is written for each
suite that begins, and one for the Verdict. A mutant may end its process at any time; the last line says how
it ended.
"""

import importlib
import json
import os
import pkgutil
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import asdict
from types import CodeType, TracebackType
from typing import IO, Any, Final

from mqproof.conformance.mutation import loading
from mqproof.conformance.mutation.examiner import Judge, Outcome, Task, Verdict, examine
from mqproof.conformance.mutation.operators import mutated

_MODULE: Final = "mqproof.conformance.mutation.fork_server"
_ONE: Final = "--one"
"""The argument of a process that judges the task of its standard input and ends."""
_WALL_FACTOR: Final = 40
"""A process that waits instead of computing is ended after this multiple of its processor time."""
_MEMORY_BYTES_MAX: Final = 16 << 30
"""The address space of a mutant: far more than any suite needs, and less than the machine should lose."""
_WAIT_S: Final = 0.002
_ENDED: Final = "ended"
"""The key of the last line of a task: the exit status of its process; below 0 if a limit killed it."""
_USED: Final = ("suites", "adapters.brokers", "adapters.client_calls", "adapters.inspections",
                "adapters.producers", "adapters.routing", "adapters.scripted_members", "adapters.workload",
                "subjects", "wire", "hostile", "damage")  # fmt: skip
"""The packages of `conformance/` that the suites import when they run."""


class ServerError(RuntimeError):
    """The server ended, or could not judge a task."""


class ForkServer:
    """The server as a process; one task at a time."""

    def __enter__(self) -> "ForkServer":
        self._scratch = tempfile.TemporaryDirectory(prefix="mqproof-mutants-", ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE], env={**os.environ, "TMPDIR": self._scratch.name},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._scratch.cleanup()  # a mutant that is killed leaves its files

    def judge(self, task: Task) -> Verdict:
        """Return the verdict on a mutant.

        Raises:
            ServerError: the server ended.
        """
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # its answer is then missing, too
            self._process.stdin.write(json.dumps(asdict(task)) + "\n")
            self._process.stdin.flush()
        *lines, end = self._answers()
        if lines and "outcome" in lines[-1]:
            return verdict_of(lines[-1])
        suite = lines[-1]["suite"] if lines else task.judges[0].suite
        if end[_ENDED] < 0:
            return Verdict(Outcome.ENDLESS, suite, "no verdict within the time", cpu_s=float(task.cpu_s))
        return Verdict(Outcome.BROKEN, suite, "the process ended", f"exit status {end[_ENDED]}")

    def _answers(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            yield answer
            if _ENDED in answer:
                return
        raise ServerError(f"the process that judges mutants ended with status {self._process.wait()}")


def verdict_of(fields: Mapping[str, Any]) -> Verdict:
    """Return the verdict of a line of JSON."""
    return Verdict(**{**fields, "outcome": Outcome(fields["outcome"])})


def _task_of(line: str) -> Task:
    fields = json.loads(line)
    judges = tuple(Judge(**{**each, "cases": tuple(each["cases"])}) for each in fields["judges"])
    return Task(**{**fields, "judges": judges})


def _serve() -> None:
    """Judge the tasks of standard input, one after the other."""
    _import_used()
    for line in sys.stdin:
        task = _task_of(line)
        functions = _functions(task)
        process = _started(line) if functions is None else _forked(task, functions)
        print(json.dumps({_ENDED: _wait(process, _WALL_FACTOR * task.cpu_s)}), flush=True)


def _import_used() -> None:
    loading.import_all()
    for name in _USED:
        package = importlib.import_module(f"mqproof.conformance.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            with suppress(ImportError):
                importlib.import_module(module.name)


def _codes(task: Task) -> dict[str, CodeType]:
    """Return the changed code of each module."""
    found = {}
    for module in task.patched or ([task.module] if task.module else ()):
        file = loading.source_of(module)
        if task.patched:
            found[module] = compile(task.patched[module], str(file), "exec", dont_inherit=True)
        else:
            tree = mutated(file.read_text(encoding="utf-8"), task.number)
            found[module] = compile(tree, str(file), "exec", dont_inherit=True)
    return found


def _functions(task: Task) -> Mapping[CodeType, CodeType] | None:
    """Return the functions to replace in imported code; None if the change needs a new import."""
    if task.is_imported or task.patched:
        return None
    if not task.module:
        return {}
    file = loading.source_of(task.module)
    original = compile(file.read_text(encoding="utf-8"), str(file), "exec", dont_inherit=True)
    functions = loading.changed_functions(original, _codes(task)[task.module])
    return functions if functions is not None and loading.are_imported(functions) else None


def _forked(task: Task, functions: Mapping[CodeType, CodeType]) -> int:
    """Fork; return the process, which replaces the functions and judges."""
    if process := os.fork():
        return process
    status = 1
    try:
        loading.replace_functions(functions)
        _judge(task)
        status = 0
    finally:
        os._exit(status)


def _started(line: str) -> int:
    """Start a process that imports the change and judges; return it."""
    process = subprocess.Popen([sys.executable, "-m", _MODULE, _ONE], stdin=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write(line)
    process.stdin.close()
    process.returncode = 0  # `_wait` waits for it
    return process.pid


def _wait(process: int, seconds: float) -> int:
    """Wait for a process, and kill it after this real time; return its exit status."""
    deadline = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(process, 9)
        time.sleep(_WAIT_S)


def _judge(task: Task) -> None:
    """Judge in this process, where the change is."""
    resource.setrlimit(resource.RLIMIT_CPU, (task.cpu_s, task.cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, _MEMORY_BYTES_MAX))
    lines = sys.stdout
    with redirect_stdout(sys.stderr):
        try:
            verdict = examine(task, lambda suite: _write(lines, {"suite": suite}))
        except BaseException as error:  # the changed code may raise anything
            verdict = Verdict(Outcome.BROKEN, "", "the process ended", repr(error)[:300])
    _write(lines, asdict(verdict))


def _write(lines: IO[str], fields: Mapping[str, object]) -> None:
    print(json.dumps(fields), file=lines, flush=True)


def main(arguments: list[str]) -> None:
    """Serve, or judge one task."""
    if arguments != [_ONE]:
        _serve()
        return
    task = _task_of(sys.stdin.readline())
    loading.install(_codes(task))
    _judge(task)


if __name__ == "__main__":
    main(sys.argv[1:])
