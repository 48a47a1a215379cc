"""Runs TLC once, in a directory of its own, and returns what it found."""

import contextlib
import logging
import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from mqproof.spec.tlc import config, output
from mqproof.spec.tlc.class_archive import archive_options
from mqproof.spec.tlc.errors import Reason, TlcError, diagnose
from mqproof.spec.tlc.output import Coverage
from mqproof.spec.tlc.toolbox import Toolbox, find_toolbox
from mqproof.spec.tlc.trace import Trace

DEADLOCK: Final = "Deadlock"
"""The name under which a deadlock is reported as a violated property."""

_log = logging.getLogger(__name__)

JAVA_OPTIONS: Final = (
    "-XX:+ExitOnOutOfMemoryError",  # without it TLC 2.15 may never exit after it runs out of memory
    "-XX:-UsePerfData",  # the counters for jstat and similar tools cost a tenth of a short run
)

_CONFIG_FILE: Final = "run.cfg"
GLANCE_SECONDS: Final = 0.2
"""The interval at which a waiting thread reads TLC's output and checks whether the run was abandoned."""
_TAIL_BYTES: Final = 4096
_STATES: Final = re.compile(rb"([\d,]+) distinct states found")


class Verdict(StrEnum):
    """TLC's answer to a question: the property holds in all behaviours, or a counterexample exists."""

    HELD = "held"
    VIOLATED = "violated"


@dataclass(frozen=True, slots=True)
class Job:
    """One question for TLC."""

    module: str
    """The name of the root module, without `.tla`."""
    config: str
    """The configuration's text."""
    libraries: tuple[Path, ...] = ()
    """Directories where modules are looked up, in this order, before TLC's standard modules."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Generated modules: name to text. They are looked up before the libraries."""
    workers: int = 1
    deadlock: bool = False
    """Whether a state without successor is an error."""
    coverage: bool = False
    dump: Path | None = None
    """The .dot file to which the state graph is written."""
    user_file: Path | None = None
    """The file to which the module's output is written."""
    keep_going: bool = False
    """Continue after a violated invariant: every violation is reported, and all states are visited."""
    seconds_max: float = 600
    heap_mib: int = 2048
    stack_mib: int = 16
    """The size of each worker's stack; deeply nested values need more."""
    brief: bool = False
    """Expected to end within seconds: use Java's quick compiler, which halves the CPU time of such a run."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run of TLC."""

    verdict: Verdict
    exit_code: int
    violated: str | None
    """The property's name, `Deadlock`, or None when everything held."""
    distinct: int
    generated: int
    depth: int
    """States on the longest shortest path from an initial state; 0 if TLC did not report it."""
    seconds: float
    coverage: Mapping[str, Coverage]
    trace: Trace | None
    text: str
    """All that TLC printed."""


def run(
    job: Job,
    toolbox: Toolbox | None = None,
    abandoned: threading.Event | None = None,
    on_states: Callable[[int], None] | None = None,
) -> Outcome:
    """Run TLC and wait for it.

    Everything TLC writes stays in a temporary directory, which is removed afterwards. The process group is
    killed by its own id when the time is over, the caller is interrupted, or `abandoned` is set. Only the
    main thread receives an interrupt; the event passes it on to the other threads.

    Args:
        on_states: receives the number of distinct states whenever TLC reports it: after a few seconds, then
            once a minute.

    Raises:
        TlcError: no verdict was reached; `reason` and the message say why.
    """
    tools = toolbox or find_toolbox()
    with tempfile.TemporaryDirectory(prefix="mqproof-tlc-") as name, archive_options(tools) as options:
        place = Path(name)
        prepare(place, job)
        began = time.monotonic()
        command = _command(tools, place, job, options)
        _log.info("TLC starts on %s with %d workers and %d MiB", job.module, job.workers, job.heap_mib)
        _log.debug("%s", shlex.join(command))
        text, exit_code = _execute(command, place, job.seconds_max, abandoned or threading.Event(), on_states)
        seconds = time.monotonic() - began
        _log.info("TLC ended on %s after %.1f s with exit code %d", job.module, seconds, exit_code)
    return judge(job, text, exit_code, seconds)


def prepare(place: Path, job: Job) -> None:
    """Write the configuration and the generated modules into an empty directory."""
    (place / "meta").mkdir()
    (place / "tmp").mkdir()
    (place / _CONFIG_FILE).write_text(job.config, encoding="utf-8")
    for module, source in job.sources.items():
        (place / f"{module}.tla").write_text(source, encoding="utf-8")


def libraries(place: Path, job: Job) -> str:
    """Return the value of Java's property TLA-Library."""
    return os.pathsep.join(map(str, [place, *(library.resolve() for library in job.libraries)]))


def arguments(place: Path, job: Job, *, small_table: bool) -> list[str]:
    """Return TLC's arguments for a job in a prepared directory.

    Args:
        small_table: TLC would clear a table of fingerprints in a quarter of the heap. With this option the
            table has a hundredth, and what it cannot hold goes to files.
    """
    # The default metadir is named after the current second: two runs in the same second would abort.
    found = ["-tool", "-config", str(place / _CONFIG_FILE), "-metadir", str(place / "meta")]
    # A fixed polynomial makes two single-worker runs alike.
    found += ["-workers", str(job.workers), "-fp", "0"]
    if small_table:
        found += ["-fpmem", "0.01"]
    if not job.deadlock:
        found += ["-deadlock"]
    if job.coverage:
        found += ["-coverage", "1"]
    if job.keep_going:
        found += ["-continue"]
    if job.dump is not None:
        found += ["-dump", "dot,actionlabels", str(job.dump.resolve())]
    if job.user_file is not None:
        found += ["-userFile", str(job.user_file.resolve())]
    return [*found, job.module]


def _command(tools: Toolbox, place: Path, job: Job, options: Sequence[str]) -> list[str]:
    command = [str(tools.java.executable), *options, f"-Xmx{job.heap_mib}m", f"-Xss{job.stack_mib}m"]
    command += ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"] if job.brief else ["-XX:+UseParallelGC"]
    # TLC unpacks its standard modules into the temporary directory, so two runs must not share it.
    command += [*JAVA_OPTIONS, f"-Djava.io.tmpdir={place / 'tmp'}", f"-DTLA-Library={libraries(place, job)}"]
    command += ["-cp", str(tools.jar), "tlc2.TLC"]
    return command + arguments(place, job, small_table=job.brief)


def _execute(
    command: list[str],
    place: Path,
    seconds_max: float,
    abandoned: threading.Event,
    on_states: Callable[[int], None] | None,
) -> tuple[str, int]:
    """Run the command in a process group of its own; return its output and exit code."""
    try:
        process = subprocess.Popen(
            command,
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise TlcError(Reason.TOOL_MISSING, f"Java did not start: {error}") from None
    try:
        text = _output(process, seconds_max, abandoned, on_states)
    except BaseException:
        kill(process)
        process.communicate()
        raise
    if text is not None:
        return text, process.returncode
    kill(process)
    text, _ = process.communicate()
    raise time_out(seconds_max, text)


def _output(
    process: subprocess.Popen[str],
    seconds_max: float,
    abandoned: threading.Event,
    on_states: Callable[[int], None] | None,
) -> str | None:
    """Return all that the process printed if it ended by itself; otherwise None."""
    until = time.monotonic() + seconds_max
    while (left := until - time.monotonic()) > 0 and not abandoned.is_set():
        try:
            return process.communicate(timeout=min(left, GLANCE_SECONDS))[0]
        except subprocess.TimeoutExpired as running:
            if on_states is not None:  # the output is bytes, in text mode too
                report_states(bytes(running.output or b""), on_states)
    return None


def report_states(printed: bytes, on_states: Callable[[int], None]) -> None:
    """Report the number of distinct states in TLC's last line of progress, if there is one."""
    if found := _STATES.findall(printed[-_TAIL_BYTES:]):
        on_states(int(found[-1].replace(b",", b"")))


def time_out(seconds_max: float, text: str) -> TlcError:
    return TlcError(Reason.TIMEOUT, f"TLC: {Reason.TIMEOUT}: no verdict within {seconds_max:g} seconds", text)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process that has a group of its own, with the group."""
    # The process was not yet waited for, so the id is still ours; it leads its own group.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def judge(job: Job, text: str, exit_code: int, seconds: float) -> Outcome:
    """Return the verdict of a run that ended.

    Raises:
        TlcError: it has none.
    """
    read = output.read(text)
    violated = _violated(job, read)
    if violated is None and exit_code != 0:
        raise diagnose(read, exit_code, text)
    if violated is None and not _finished(read):
        raise TlcError(Reason.CRASH, "TLC: crash: it ended without saying that it finished", text)
    if violated is None and read.errors:
        # For example, TLC cannot read a file of its liveness graph: it prints the exception, and succeeds.
        error = " ".join(read.errors[0].text.split())
        raise TlcError(Reason.CRASH, f"TLC: crash: it reports success after an error: {error}", text)
    distinct, generated = read.states
    return Outcome(
        verdict=Verdict.HELD if violated is None else Verdict.VIOLATED,
        exit_code=exit_code,
        violated=violated,
        distinct=distinct,
        generated=generated,
        depth=read.depth,
        seconds=seconds,
        coverage=read.coverage,
        trace=read.trace,
        text=text,
    )


def _finished(read: output.Output) -> bool:
    """Return whether TLC examined states and reported success. Exit code 0 alone is not a verdict."""
    return bool(read.of(output.SUCCESS)) and read.states[0] > 0


def _violated(job: Job, read: output.Output) -> str | None:
    for message in read.of(*output.INVARIANT, *output.ACTION_PROPERTY):
        words = message.text.split()
        if "module" in words:  # a part of a property: TLC reports its place, not the property's name
            return _asked(job)
        return words[words.index("is") - 1] if "is" in words else message.text
    if read.of(output.DEADLOCK):
        return DEADLOCK
    return _asked(job) if read.of(output.TEMPORAL) else None


def _asked(job: Job) -> str:
    """Return the violated property when TLC does not name it; it is certain if there is only one."""
    asked = config.parse(job.config).names("PROPERTY")
    return asked[0] if len(asked) == 1 else "one of " + ", ".join(asked)
