"""Runs and judges one case, by interpreting its steps."""

import itertools
import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from string import Template
from typing import Final

from msgspec.structs import replace

from mqproof.conformance.wire.frames import ONEWAY, RESPONSE, Frame, MalformedError, encode
from mqproof.conformance.wire.model import (
    COMMIT_OFFSET,
    NOT_SUPPORTED,
    Awaited,
    Call,
    Case,
    Expect,
    Hangup,
    Kind,
    Manner,
    Pushed,
    Put,
    Request,
    Step,
    Strength,
    Verdict,
    Written,
)
from mqproof.conformance.wire.server_connection import (
    Address,
    ClosedError,
    Connection,
    SilentError,
    UnreachableError,
    connected,
)

_BATCH: Final = 5
_POLL_S: Final = 0.02
_OPAQUES: Final = itertools.count(1000)
_CUT_OPAQUE: Final = 1_000_000_000
"""Opaques of equal length, so that the split positions stay the same."""
_NOT_MET: Final = {
    Strength.MUST: Verdict.FAILED,
    Strength.SHOULD: Verdict.NON_STRICT,
    Strength.MAY: Verdict.INFORMATIONAL,
}
_FORMS: Final = {
    Kind.TEXT: re.compile(r"(?s).*"),
    Kind.INT: re.compile(r"-?\d{1,10}"),
    Kind.LONG: re.compile(r"-?\d{1,19}"),
    Kind.BOOL: re.compile("true|false"),
}


@dataclass(frozen=True, slots=True)
class Judged:
    case: Case
    verdict: Verdict
    detail: str
    """The unexpected answer; the answer itself for INFORMATIONAL."""
    exchanges: int
    seconds: float


class _NotMetError(Exception):
    """An answer does not meet the case's requirements."""


class _ServerFailedError(Exception):
    """The server did not refuse the request, but failed at it. No strength of a rule excuses that."""


class _UnimplementedError(Exception):
    pass


def run(case: Case, address: Address, environment: Mapping[str, str], seconds_max: float) -> Judged:
    """Judge a case on its own connections; each answer is awaited for at most `seconds_max`.

    A server that does not accept connections fails the case: the previous case may have crashed it.
    """
    began = time.perf_counter()
    with ExitStack() as stack:
        play = _Play(lambda: stack.enter_context(connected(address, seconds_max)), dict(environment))
        verdict, detail = _judge(case, play)
    return Judged(case, verdict, detail, play.exchanges, time.perf_counter() - began)


def _judge(case: Case, play: "_Play") -> tuple[Verdict, str]:
    try:
        for step in case.steps:
            play.step(step)
    except _UnimplementedError as error:
        return Verdict.UNIMPLEMENTED, str(error)
    except _NotMetError as error:
        return _NOT_MET[case.strength], str(error)
    except (SilentError, ClosedError, UnreachableError, MalformedError, _ServerFailedError) as error:
        return Verdict.FAILED, str(error)
    if case.strength is Strength.MAY:
        return Verdict.INFORMATIONAL, play.last
    return Verdict.OK, ""


@dataclass(slots=True)
class _Play:
    """The state of one running case."""

    connect: Callable[[], Connection]
    names: dict[str, str]
    """Values of the template names."""
    exchanges: int = 0
    last: str = ""
    """A description of the last answer."""
    _connections: dict[str, Connection] = field(default_factory=dict)
    _put: dict[str, tuple[Connection, int, float]] = field(default_factory=dict)

    def step(self, step: Step) -> None:
        match step:
            case Call():
                self._call(step)
            case Put():
                connection, frame = self._connection(step.connection), self._frame(step.request)
                connection.write(encode(frame))
                self._put[step.name] = connection, frame.opaque, time.monotonic()
            case Awaited():
                connection, opaque, at = self._put.pop(step.name)
                self._answered(connection, opaque, step.expect, at)
            case Pushed():
                self._pushed(step)
            case Written():
                self._written(step)
            case Hangup():
                self._connections.pop(step.connection).close()

    def _call(self, step: Call) -> None:
        connection = self._connection(step.connection)
        frame = self._frame(step.request)
        match step.manner:
            case Manner.ONCE:
                self._keep(step, self._once(connection, frame, step.expect))
            case Manner.EVENTUALLY:
                self._keep(step, self._eventually(connection, frame, step.expect))
            case Manner.ONEWAY:
                self._oneway(connection, frame, step.expect)
            case Manner.OPAQUE_REUSED:
                connection.write(encode(frame) * 2)
                for _ in range(2):
                    self._answered(connection, frame.opaque, step.expect)
                self._once(connection, frame, step.expect)
            case Manner.BATCH:
                frames = [replace(frame, opaque=next(_OPAQUES)) for _ in range(_BATCH)]
                connection.write(b"".join(map(encode, frames)))
                for one in frames:
                    self._answered(connection, one.opaque, step.expect)
            case Manner.CUTS:
                self._cuts(connection, frame, step.expect, step.cut_step)

    def _keep(self, step: Call, answer: Frame) -> None:
        self.names.update({name: kept(answer, what) for name, what in step.keep.items()})

    def _once(self, connection: Connection, frame: Frame, expect: Expect) -> Frame:
        at = time.monotonic()
        connection.write(encode(frame))
        return self._answered(connection, frame.opaque, expect, at)

    def _eventually(self, connection: Connection, frame: Frame, expect: Expect) -> Frame:
        deadline = time.monotonic() + connection.seconds_max
        while True:
            try:
                return self._once(connection, replace(frame, opaque=next(_OPAQUES)), expect)
            except _NotMetError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(_POLL_S)

    def _oneway(self, connection: Connection, frame: Frame, expect: Expect) -> None:
        """Send a one-way request and two normal ones, which give a wrong answer time to arrive."""
        silent = replace(frame, opaque=next(_OPAQUES), flag=ONEWAY)
        connection.write(encode(silent))
        for _ in range(2):
            self._once(connection, replace(frame, opaque=next(_OPAQUES)), expect)
        if connection.has_answer(silent.opaque):
            raise _NotMetError("the one-way request was answered")

    def _cuts(self, connection: Connection, frame: Frame, expect: Expect, step: int) -> None:
        """Send frames split at every position, without needing pauses.

        Each write has the rest of one frame and the beginning of the next. When the first is answered, the
        server has received only the beginning of the second.
        """
        size = len(encode(replace(frame, opaque=_CUT_OPAQUE)))
        cuts = range(1, size, step)
        rest = b""
        for cut in cuts:
            data = encode(replace(frame, opaque=_CUT_OPAQUE + cut))
            connection.write(rest + data[:cut])
            if rest:
                self._answered(connection, _CUT_OPAQUE + cut - step, expect, cut=cut - step)
            rest = data[cut:]
        connection.write(rest)
        self._answered(connection, _CUT_OPAQUE + cuts[-1], expect, cut=cuts[-1])

    def _pushed(self, step: Pushed) -> None:
        connection = self._connection(step.connection)
        frame = connection.request(step.code)
        self.exchanges += 1
        self._check_values(frame, step.values)
        self._check_body(frame.body, step.has, ())
        if step.reply is not None:
            reply = Frame(0, frame.opaque, RESPONSE, body=self._text(step.reply).encode())
            connection.write(encode(reply))

    def _written(self, step: Written) -> None:
        connection = self._connection(step.connection)
        try:
            connection.write(step.data)
        except ClosedError:
            if not step.closes:
                raise
        if step.closes:
            connection.until_closed()
            self._connections.pop(step.connection).close()
            self.exchanges += 1
        if step.answers is not None:
            self._answered(connection, step.answers, step.expect)

    def _answered(
        self, connection: Connection, opaque: int, expect: Expect, at: float = 0.0, cut: int | None = None
    ) -> Frame:
        where = "" if cut is None else f"split after byte {cut}: "
        try:
            answer = connection.answer(opaque)
            took = time.monotonic() - at
            self.exchanges += 1
            self._check(answer, expect)
        except (SilentError, ClosedError, MalformedError, _NotMetError, _ServerFailedError) as error:
            raise type(error)(f"{where}{error}") from None
        if took < expect.not_before_s:
            raise _NotMetError(f"answered after {took:.3f} s, not before {expect.not_before_s:g} s expected")
        return answer

    def _check(self, answer: Frame, expect: Expect) -> None:
        text = f"code {answer.code}" + (f", {answer.remark[:80]!r}" if answer.remark else "")
        self.last = f"answered with {text}"
        if answer.is_own_error:
            raise _ServerFailedError(f"{self.last}, an error of the server itself")
        if answer.code in {NOT_SUPPORTED, *expect.lacking}.difference(expect.codes):
            raise _UnimplementedError(text)
        if expect.codes and answer.code not in expect.codes:
            codes = " or ".join(map(str, expect.codes))
            raise _NotMetError(f"{self.last}; {codes} expected")
        if answer.code in expect.not_codes:
            raise _NotMetError(f"{self.last}; another code expected")
        if expect.codes and answer.code != expect.codes[0]:
            return
        for name, kind in expect.fields.items():
            value = answer.fields.get(name)
            if value is None or _FORMS[kind].fullmatch(value) is None:
                raise _NotMetError(f"{self.last}; field {name} is {value!r}")
        self._check_values(answer, expect.values)
        self._check_body(answer.body, expect.has, expect.lacks)
        if expect.records is not None and (count := records(answer.body)) != expect.records:
            raise _NotMetError(f"{self.last}; {count} messages, {expect.records} expected")

    def _check_values(self, frame: Frame, values: Mapping[str, str]) -> None:
        for name, value in values.items():
            seen, expected = frame.fields.get(name), self._text(value)
            if seen != expected:
                raise _NotMetError(f"code {frame.code} with {name} {seen!r}, {expected!r} expected")

    def _check_body(self, body: bytes, has: tuple[str, ...], lacks: tuple[str, ...]) -> None:
        for text in map(self._text, has):
            if text.encode() not in body:
                raise _NotMetError(f"{text!r} is not in the body of {len(body)} bytes, {body[:80]!r}")
        for text in map(self._text, lacks):
            if text.encode() in body:
                raise _NotMetError(f"{text!r} is in the body of {len(body)} bytes")

    def _connection(self, name: str) -> Connection:
        if name not in self._connections:
            self._connections[name] = self.connect()
        return self._connections[name]

    def _frame(self, request: Request) -> Frame:
        body = request.body if isinstance(request.body, bytes) else self._text(request.body).encode()
        return Frame(
            code=request.code,
            opaque=next(_OPAQUES) if request.opaque is None else request.opaque,
            fields={name: self._text(value) for name, value in request.fields.items()},
            body=body,
            version=request.version,
            header=request.header,
            language=request.language,
        )

    def _text(self, template: str) -> str:
        return Template(template).substitute(self.names)


def kept(answer: Frame, what: str) -> str:
    """Return the answer's field, or, with `COMMIT_OFFSET`, the commit offset in its `msgId`."""
    if what != COMMIT_OFFSET:
        return answer.fields.get(what, "")
    try:
        return str(int(answer.fields.get("msgId", "")[-16:], 16))
    except ValueError:
        raise MalformedError(f"msgId {answer.fields.get('msgId')!r} is not an offset message id") from None


def records(body: bytes) -> int:
    """Return the number of stored messages in a body.

    Raises:
        MalformedError: the sizes of the messages do not match the body.
    """
    count = at = 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 4], "big")
        if size < 8 or at + size > len(body):
            raise MalformedError(f"message {count} of a body of {len(body)} bytes says {size} bytes")
        at += size
        count += 1
    return count
