"""Sees the frames of all connections of a suite's clients, and keeps what is wrong in the answers."""

from collections.abc import Callable, Iterable
from typing import Final

from mqproof.conformance.answers.client_rules import Client
from mqproof.conformance.answers.known import Known
from mqproof.conformance.answers.request_and_answer import (
    CHECK_TRANSACTION,
    END_TRANSACTION,
    NOTIFY_MEMBERS,
    RESET_OFFSETS,
    SEND,
    SEND_BATCH,
    SEND_V2,
    Exchange,
    Wrong,
    long_names,
)
from mqproof.conformance.answers.rules import checked_transaction, wrong_in
from mqproof.conformance.engine.finding import WITNESSES_MAX
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import ONEWAY, RESPONSE, Frame, Header, MalformedError, take
from mqproof.report.model import Witness

_SENDS: Final = frozenset({SEND, SEND_V2, SEND_BATCH})
_ONE_WAY_PUSHES: Final = frozenset({CHECK_TRANSACTION, NOTIFY_MEMBERS, RESET_OFFSETS})
"""The requests that servers send to clients one-way."""
_SHOWN: Final = ("topic", "queueId", "queueOffset", "offset", "key", "consumerGroup", "group", "msgId")
"""The members of a request that reports show."""
_JSON_SINCE: Final = 420
"""Releases from 5.0 on answer in JSON, whatever the request had."""


class Watch:
    """All answers that the clients of one example receive."""

    def __init__(
        self, now_ms: Callable[[], int], *, is_exact: bool, judges_answers: bool = True, stored_at: str = ""
    ) -> None:
        """`stored_at`: the address of the broker that stored all records; empty for the one that answers.

        ANY_BROKER stands for each one of a group that elects its master.

        `is_exact`: whether clients and servers have one clock, and no relay is between them.

        `judges_answers`: false if the suite itself answers its client.
        """
        self.judges_answers = judges_answers
        self.answers = 0
        """The number of answers seen."""
        self.wrong: list[Witness] = []
        self._frames = 0
        self._now_ms = now_ms
        self.is_exact = is_exact
        self._stored_at = stored_at
        self._known: dict[str, Known] = {}
        self._clients: dict[str, Client] = {}

    def connection(self, client: str, server: str, *, examined: bool) -> "WatchedConnection":
        """`examined`: whether the client's requests are judged too. Its machine has no other client."""
        known = self._known.setdefault(server, Known(self.is_exact, self._stored_at))
        of_client = self._clients.setdefault(client.rpartition(":")[0], Client()) if examined else None
        return WatchedConnection(self, known, of_client, client, server)

    def crashed(self) -> None:
        """Forget what a crash of a server may take back."""
        for known in self._known.values():
            known.crashed()

    def forget(self) -> None:
        """Forget everything: the servers lost their messages."""
        self._known.clear()

    def next_number(self) -> int:
        """Return the number of the next frame."""
        self._frames += 1
        return self._frames

    def now_ms(self) -> int:
        return self._now_ms()

    def found(self, what: str, wrong: Iterable[Wrong]) -> None:
        """Keep what is wrong in one answer or request; `what` describes it."""
        for each in wrong:
            if len(self.wrong) < WITNESSES_MAX:
                self.wrong.append(Witness(f"{what}: {each.text}", {"rule": each.rule}))


class WatchedConnection:
    """The frames of one connection, in both directions."""

    def __init__(self, watch: Watch, known: Known, examined: Client | None, client: str, server: str) -> None:
        self._watch = watch
        self._known = known
        self._examined = examined
        self._client = client
        self._server = server
        self._out, self._in = bytearray(), bytearray()
        self._open: dict[int, tuple[Frame, int, int]] = {}
        """The requests without an answer, by opaque, each with its time and its number."""

    def sent(self, data: bytes) -> None:
        """Take bytes that the client sends; what is no frame is not examined, since it is not an answer."""
        self._out += data
        try:
            while request := take(self._out):
                self._asked(request)
        except MalformedError:
            self._out.clear()

    def received(self, data: bytes) -> None:
        """Take bytes that the client receives."""
        self._in += data
        try:
            while frame := take(self._in):
                if frame.is_response:
                    self._answered(frame)
                else:
                    self._pushed(frame)
        except MalformedError as error:
            self._in.clear()
            self._watch.found("an answer", [Wrong(chapters.REMOTING_FRAME, str(error))])

    def _asked(self, request: Frame) -> None:
        if request.is_response:
            return
        now_ms = self._watch.now_ms()
        if request.code in _SENDS:
            self._known.asked(request, self._client, now_ms)
        elif request.code == END_TRANSACTION:
            self._known.ended(request)
        if self._examined and (wrong := list(self._examined.asked(request, self._server, now_ms))):
            self._watch.found(f"the request {request.code} of {self._client} {_shown(request)}", wrong)
        if not request.flag & ONEWAY:
            self._open[request.opaque] = request, now_ms, self._watch.next_number()

    def _answered(self, answer: Frame) -> None:
        self._watch.answers += 1
        asked = self._open.pop(answer.opaque, None)
        if asked is None:
            text = f"opaque {answer.opaque} is that of no request without an answer"
            self._watch.found(f"an answer with code {answer.code}", [Wrong(chapters.REMOTING_COMMAND, text)])
            return
        request, asked_ms, asked_at = asked
        exchange = Exchange(
            request, answer, self._client, self._server, asked_ms, self._watch.now_ms(), asked_at,
            self._watch.next_number(),
        )  # fmt: skip
        if self._examined:
            self._examined.answered(exchange)
        if not self._watch.judges_answers:
            return
        if wrong := [*_frame(request, answer), *wrong_in(self._known, exchange)]:
            what = f"the answer with code {answer.code} to request {request.code} {_shown(request)}"
            self._watch.found(what, wrong)

    def _pushed(self, request: Frame) -> None:
        """A request of the server."""
        if self._examined and request.code == RESET_OFFSETS:
            self._examined.moved()
        if request.code in _ONE_WAY_PUSHES and not request.flag & ONEWAY:
            wrong = Wrong(chapters.REQUESTS_TO_CLIENTS, "it is not one-way")
            self._watch.found(f"the request {request.code} of the server", [wrong])
        if request.code == CHECK_TRANSACTION and self._watch.judges_answers:
            wrong_check = checked_transaction(self._known, request)
            self._watch.found(f"the request {request.code} of the server {_shown(request)}", wrong_check)


def _shown(request: Frame) -> str:
    fields = long_names(request)
    return " ".join(f"{name}={fields[name]}" for name in _SHOWN if name in fields)


def _frame(request: Frame, answer: Frame) -> Iterable[Wrong]:
    """What every answer has in common."""
    if answer.flag != RESPONSE:
        yield Wrong(chapters.REMOTING_COMMAND, f"flag {answer.flag}, expected {RESPONSE}")
    if answer.version <= 0 or (answer.header is Header.JSON and not answer.language):
        yield Wrong(chapters.REMOTING_COMMAND, f"language {answer.language!r}, version {answer.version}")
    if answer.header is not request.header and answer.version < _JSON_SINCE:
        text = f"serialization {answer.header.name}, that of the request is {request.header.name}"
        yield Wrong(chapters.REMOTING_COMMAND, text)
