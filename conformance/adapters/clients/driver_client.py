"""A client program in another process: commands go to its standard input, events come from its output.

`Driver.java` has Apache's Java clients, `go/main.go` its Go client, and `client_program.py` ours.

A command is a line of words, each of them percent-encoded; an event is a line of JSON. Every command ends
with the event `done`, or `error`, whose message begins with `unsupported` if the client lacks the function.

send MODE TOPIC COUNT BYTES TAG: messages `0`, `1`, ... of that size; MODE is sync, async, oneway, batch or
    delay-LEVEL. Only the Java program has it.
put MODE TOPIC BODY TAG PROPERTIES: one message whose key is its body. PROPERTIES are `a=1&b=2`. MODE is sync,
    async, oneway, level-LEVEL, sec-SECONDS, ms-MS, at-MS (a time), or key-KEY (the queue of that key).
batch TOPIC PREFIX COUNT: messages PREFIX0, PREFIX1, ... in one request.
burst TOPIC PREFIX COUNT GAP_MS: in the background, with an event `burst` for each message, then `burst-end`.
recall TOPIC HANDLE: an event `recalled` or `not-recalled`.
transactions GROUP: start a transaction producer.
transact TOPIC BODY TAG: TAG is commit, rollback, unknown-commit or unknown-rollback (the check decides), or
    hang-commit or hang-rollback (the local transaction never returns). Events: `executed`, `checked`.
subscribe NAME MODE GROUP TOPIC EXPRESSION [MAX]: start a consumer that emits `message`. MODE is concurrent,
    orderly, broadcast or lite. EXPRESSION has tags, or begins with `sql:`. MAX limits redeliveries.
pull GROUP TOPIC: all messages of the topic's queues, for the consumer `pull`.
answer NAME GROUP TOPIC: start a consumer that replies to each message, with `re:` and its body.
request TOPIC BODY MS: send a request and wait: an event `reply` or `no-reply`.
close NAME: close that consumer.

A consumer fails each message with the tag `fail` at its first delivery, and with `dead` at every delivery.
"""

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

Event = dict[str, Any]
"""One line of the program's output; the kind of event is under "event"."""

_SECONDS_MAX: Final = 60.0
_BETWEEN: Final = ("burst", "burst-end", "executed", "checked")


class DriverError(RuntimeError):
    """A client failed, or an expected event did not come.

    The message contains the client's message.
    """


class UnsupportedError(DriverError):
    """The client has no such function."""


class DriverClient:
    """One client process with a producer and any number of consumers, on one name server."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.messages: list[Event] = []
        """The messages that consumers have received so far."""
        self.others: list[Event] = []
        """The events that came between commands: of bursts, transactions and checks."""
        self._process = process
        self._log = log
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def expect_ready(self) -> None:
        """Wait for the program's first event. Raises DriverError."""
        if self._next(time.monotonic() + _SECONDS_MAX) != {"event": "ready"}:
            raise DriverError(f"the client did not start; see {self._log}")

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

    def put(
        self,
        topic: str,
        body: str,
        *,
        mode: str = "sync",
        tag: str = "TagA",
        properties: Mapping[str, str] | None = None,
    ) -> Event:
        """Send one message and return its `sent` event, empty for a one-way send. Raises DriverError."""
        pairs = "&".join(f"{name}={value}" for name, value in (properties or {}).items())
        self._command("put", mode, topic, body, tag, pairs)
        return self._sent(self._until_done())

    def batch(self, topic: str, prefix: str, count: int) -> Event:
        """Send messages in one request and return its `sent` event. Raises DriverError."""
        self._command("batch", topic, prefix, str(count))
        return self._sent(self._until_done())

    def burst(self, topic: str, prefix: str, count: int, gap_ms: int) -> None:
        """Send messages one after the other in the background; `others` receives the events."""
        self._command("burst", topic, prefix, str(count), str(gap_ms))
        self._until_done()

    def recall(self, topic: str, handle: str) -> str | None:
        """Recall a message; return None, or the reason why the broker refused it. Raises UnsupportedError."""
        self._command("recall", topic, handle)
        refused = [event for event in self._until_done() if event["event"] == "not-recalled"]
        return str(refused[0]["message"]) if refused else None

    def transactions(self, group: str) -> None:
        """Start a transaction producer."""
        self._command("transactions", group)
        self._until_done()

    def transact(self, topic: str, body: str, tag: str) -> None:
        """Send a transactional message; the tag decides how its transaction ends."""
        self._command("transact", topic, body, tag)
        self._until_done()

    def subscribe(
        self,
        name: str,
        topic: str,
        group: str,
        *,
        mode: str = "concurrent",
        tags: str = "*",
        redeliveries_max: int | None = None,
    ) -> None:
        """Start a consumer; `mode` is concurrent, orderly, broadcast or lite.

        Its messages are collected in `messages`. `tags` may also be `sql:` and an expression.
        """
        limit = () if redeliveries_max is None else (str(redeliveries_max),)
        self._command("subscribe", name, mode, group, topic, tags, *limit)
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

    def listen(self, seconds_max: float) -> bool:
        """Wait for one event and keep it; return whether one came."""
        event = self._next(time.monotonic() + seconds_max)
        if event is not None:
            self._note(event)
        return event is not None

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
        with suppress(BrokenPipeError):  # it was killed
            self._process.stdin.close()
        try:
            self._process.wait(_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(_SECONDS_MAX)
        self._reader.join()

    def kill(self) -> None:
        """Send SIGKILL to the process."""
        self._process.kill()
        self._process.wait(_SECONDS_MAX)

    def _command(self, *words: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(quote(word, safe="") for word in words).encode() + b"\n")
        self._process.stdin.flush()

    @staticmethod
    def _sent(events: list[Event]) -> Event:
        failed = [event["message"] for event in events if event["event"] == "not-sent"]
        if failed:
            raise DriverError(str(failed[0]))
        return next((event for event in events if event["event"] == "sent"), {})

    def _until_done(self) -> list[Event]:
        deadline = time.monotonic() + _SECONDS_MAX
        others: list[Event] = []
        while (event := self._next(deadline)) is not None:
            if event["event"] == "error":
                kind = UnsupportedError if "unsupported" in str(event["message"]).lower() else DriverError
                raise kind(str(event["message"]))
            if event["event"] == "done":
                return others
            if not self._note(event):
                others.append(event)
        raise DriverError(f"no answer within {_SECONDS_MAX:.0f} s; see {self._log}")

    def _note(self, event: Event) -> bool:
        """Keep an event that is no answer to a command; return whether it is one."""
        if event["event"] == "message":
            self.messages.append(event)
        elif event["event"] in _BETWEEN:
            self.others.append(event)
        return event["event"] in ("message", *_BETWEEN)

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
def driven(command: list[str], folder: Path, log: Path) -> Iterator[DriverClient]:
    """Start a client program; it is ended after the block. Raises DriverError.

    Its home is the folder: clients keep the positions of broadcast consumers below the home of the user, and
    a later run would go on from them.
    """
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            env={**os.environ, "HOME": str(folder)},
            start_new_session=True,
        )
    client = DriverClient(process, log)
    try:
        client.expect_ready()
        yield client
    finally:
        client.end()
