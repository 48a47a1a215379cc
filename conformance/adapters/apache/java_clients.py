"""Apache's own Java clients, driven by `Driver.java`, and its mqadmin."""

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

from mqproof.conformance.adapters.apache.artifacts import class_path, jars, java, program
from mqproof.conformance.adapters.apache.servers import MODULE_FLAGS, SMALL_JVM, home
from mqproof.impl.runtime.network import Address

Event = dict[str, Any]
"""One line of the driver's output; the kind of event is under "event"."""

_SOURCE: Final = Path(__file__).with_name("Driver.java")
_ADMIN: Final = "org.apache.rocketmq.tools.command.MQAdminStartup"
_SECONDS_MAX: Final = 60.0
_COMPILE_SECONDS_MAX: Final = 120.0


class DriverError(RuntimeError):
    """Apache's client failed, or an expected event did not come.

    The message contains the client's message.
    """


class JavaClient:
    """One Java process with a producer and any number of consumers, on one name server."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.messages: list[Event] = []
        """The messages that consumers have received so far."""
        self._process = process
        self._log = log
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(
        self, topic: str, count: int, *, mode: str = "sync", size: int = 0, tag: str = "TagA"
    ) -> list[Event]:
        """Send messages and return the `sent` events. Raises DriverError if one failed.

        `mode`: sync, async, oneway, batch, delay-LEVEL.
        """
        self._command("send", mode, topic, str(count), str(size), tag)
        events = self._until_done()
        if failed := [event["message"] for event in events if event["event"] == "not-sent"]:
            raise DriverError(f"{len(failed)} of {count} sends failed: {failed[0]}")
        return events

    def subscribe(
        self, name: str, topic: str, group: str, *, mode: str = "concurrent", tags: str = "*"
    ) -> None:
        """Start a consumer; `mode` is concurrent, orderly, broadcast or lite.

        Its messages are collected in `messages`.
        """
        self._command("subscribe", name, mode, group, topic, tags.replace(" ", ""))
        self._until_done()

    def answer(self, name: str, topic: str, group: str) -> None:
        """Start a consumer that replies to each message, with `re:` and its body."""
        self._command("answer", name, group, topic)
        self._until_done()

    def request(self, topic: str, body: str, timeout_ms: int) -> str | None:
        """Send a request and return the body of its reply, or None if none came in time."""
        self._command("request", topic, body, str(timeout_ms))
        (event,) = [each for each in self._until_done() if each["event"] in ("reply", "no-reply")]
        return event.get("body")

    def pull(self, topic: str, group: str) -> list[Event]:
        """Pull everything that is in the topic now into `messages`. Return the `queue-end` events."""
        self._command("pull", group, topic)
        return self._until_done()

    def close(self, name: str) -> None:
        """Stop the consumer."""
        self._command("close", name)
        self._until_done()

    def wait_for(self, count: int, consumer: str, seconds_max: float = _SECONDS_MAX) -> list[Event]:
        """Wait for this number of the consumer's messages and return them.

        Raises DriverError if they do not come.
        """
        deadline = time.monotonic() + seconds_max
        while len(got := self.of(consumer)) < count:
            if (event := self._next(deadline)) is None:
                raise DriverError(f"{consumer} received {len(got)} of {count} messages; see {self._log}")
            self._note(event)
        return got

    def of(self, consumer: str) -> list[Event]:
        return [message for message in self.messages if message["consumer"] == consumer]

    def end(self) -> None:
        """End the clients, which then leave their groups; a process that does not end is killed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(_SECONDS_MAX)
        self._reader.join()

    def _command(self, *words: str) -> None:
        assert self._process.stdin is not None
        assert not any(" " in word or not word for word in words), words
        self._process.stdin.write(" ".join(words).encode() + b"\n")
        self._process.stdin.flush()

    def _until_done(self) -> list[Event]:
        deadline = time.monotonic() + _SECONDS_MAX
        others: list[Event] = []
        while (event := self._next(deadline)) is not None:
            if event["event"] == "error":
                raise DriverError(str(event["message"]))
            if event["event"] == "done":
                return others
            if not self._note(event):
                others.append(event)
        raise DriverError(f"no answer within {_SECONDS_MAX:.0f} s; see {self._log}")

    def _note(self, event: Event) -> bool:
        is_message = bool(event["event"] == "message")
        if is_message:
            self.messages.append(event)
        return is_message

    def _next(self, deadline: float) -> Event | None:
        try:
            return self._events.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.startswith(b'{"event"'):  # libraries print there too
                    self._events.put(json.loads(line))


@contextmanager
def java_client(
    release: str, folder: Path, name_server: Address, *, jvm: tuple[str, ...] = ()
) -> Iterator[JavaClient]:
    """Start a process with Apache's clients of that release; it is ended after the block.

    Raises:
        ApacheMissingError, DriverError.
    """
    log = folder / "java-client.log"
    flags = (*SMALL_JVM, *_client_flags(folder), *jvm)
    classes = f"{compiled(release, _SOURCE)}:{class_path(release)}"
    command = [java(), *flags, "-cp", classes, "Driver", str(name_server)]
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            start_new_session=True,
        )
    client = JavaClient(process, log)
    try:
        if client._next(time.monotonic() + _SECONDS_MAX) != {"event": "ready"}:
            raise DriverError(f"the Java client did not start; see {log}")
        yield client
    finally:
        client.end()


def mqadmin(
    release: str, folder: Path, name_server: Address, *arguments: str, jvm: tuple[str, ...] = ()
) -> str:
    """Return the output of mqadmin. Raises ApacheMissingError, and DriverError when it takes too long."""
    with tempfile.TemporaryFile() as output:
        process = mqadmin_process(release, folder, name_server, *arguments, output=output, jvm=jvm)
        try:
            process.wait(_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            raise DriverError(f"mqadmin {' '.join(arguments)} did not finish") from None
        finally:
            process.kill()
            process.wait(_SECONDS_MAX)
        output.seek(0)
        return output.read().decode(errors="replace")


def mqadmin_process(
    release: str,
    folder: Path,
    name_server: Address,
    *arguments: str,
    output: IO[bytes],
    jvm: tuple[str, ...] = (),
) -> subprocess.Popen[bytes]:
    """Start mqadmin, which writes to `output`. The caller ends it. Raises ApacheMissingError.

    Without arguments, it lists its commands.
    """
    flags = (*SMALL_JVM, *_client_flags(folder), *MODULE_FLAGS, *jvm)
    where = ("-n", str(name_server)) if arguments else ()
    command = [java(), *flags, "-cp", class_path(release), _ADMIN, *arguments, *where]
    environment = {**os.environ, "ROCKETMQ_HOME": str(home(folder))}
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, env=environment
    )


def _client_flags(folder: Path) -> tuple[str, ...]:
    # Logs and broadcast offsets are written below the user's home; here it is the test's folder.
    return (
        f"-Duser.home={folder}",
        "-Drocketmq.client.logLevel=WARN",
        f"-Drmq.logback.configurationFile={home(folder)}/conf/5.xml",
    )


@cache
def compiled(release: str, program_source: Path) -> Path:
    """Return the folder with a program's classes, next to the release's jars; compile them if necessary."""
    source = program_source.read_bytes()
    folder = jars(release).parent / f"driver-{release}-{zlib.crc32(source):08x}"
    if not folder.is_dir():
        compiler = program("javac", "install a JDK 17, a JRE is not enough")
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".driver-") as scratch:
            command = [
                compiler,
                "-nowarn",
                "-proc:none",
                "-cp",
                class_path(release),
                "-d",
                scratch,
                str(program_source),
            ]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_COMPILE_SECONDS_MAX, check=False
            )
            if done.returncode != 0:
                raise DriverError(
                    f"{program_source.name} cannot be compiled against {release}: {done.stderr}"
                )
            if not folder.is_dir():
                Path(scratch).rename(folder)
                Path(scratch).mkdir()  # for the context manager to remove
    return folder
