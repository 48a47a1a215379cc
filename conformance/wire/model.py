"""What a wire case is: steps at a server, what each must bring, and how much it matters.

Texts are templates: `$topic` and the like stand for what the scene of a run has (scene.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from mqproof.conformance.wire.frames import LANGUAGE, VERSION, Header

NOT_SUPPORTED: Final = 3
"""The response code of whoever does not know the request code."""

COMMIT_OFFSET: Final = "commit offset of msgId"
"""What `Ask.keep` may name beside the answer's fields."""


class Verdict(StrEnum):
    OK = "OK"
    NON_STRICT = "NON-STRICT"  # a SHOULD is not met
    INFORMATIONAL = "INFORMATIONAL"  # a MAY: what is answered is told, nothing is asked
    UNIMPLEMENTED = "UNIMPLEMENTED"  # the server says that it does not know the request code
    FAILED = "FAILED"  # a MUST is not met, or there is no answer in time, or none that can be read


class Strength(StrEnum):
    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Since(StrEnum):
    """The release from which on the rule holds."""

    V4_9 = "4.9"
    V5 = "5"


class Server(StrEnum):
    BROKER = "broker"
    NAME_SERVER = "name server"


class Kind(StrEnum):
    """Type of a header field: text, 32 and 64 bit signed, true or false."""

    TEXT = "S"
    INT = "I"
    LONG = "L"
    BOOL = "B"


@dataclass(frozen=True, slots=True)
class Field:
    """A member of an operation's header."""

    name: str
    kind: Kind
    required: bool
    value: str | None = None
    """Of the valid request; None: it is left out there."""
    since: Since = Since.V4_9


@dataclass(frozen=True, slots=True)
class Expect:
    """What an answer must be. Fields and body are looked at in answers with the first of the codes only."""

    codes: tuple[int, ...] = (0,)
    """Any of these; () is any code at all."""
    not_codes: tuple[int, ...] = ()
    lacking: tuple[int, ...] = ()
    """With these the server says that it does not have what is asked for."""
    fields: Mapping[str, Kind] = field(default_factory=dict)
    """Members the answer's header must have, and of what type."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Members and their very values."""
    has: tuple[str, ...] = ()
    """Texts that the body has in it."""
    lacks: tuple[str, ...] = ()
    """Texts that the body has not."""
    records: int | None = None
    """How many stored messages the body has."""
    not_before_s: float = 0.0
    """The answer comes no earlier than so long after the request."""


ANY: Final = Expect(codes=())
"""Answered, whatever it says."""


@dataclass(frozen=True, slots=True)
class Request:
    code: int
    fields: Mapping[str, str] = field(default_factory=dict)
    body: str | bytes = b""
    """Text is a template, bytes are sent as they are."""
    header: Header = Header.JSON
    opaque: int | None = None
    """None: the runner counts."""
    version: int = VERSION
    language: str = LANGUAGE


class Manner(StrEnum):
    """How a request is made."""

    ONCE = "once"
    EVENTUALLY = "eventually"  # again and again, until the answer is as expected
    ONEWAY = "one-way"  # no answer may come; a common request behind it is answered
    OPAQUE_REUSED = "opaque reused"  # twice in one write with one opaque, and once more
    BATCH = "batch"  # five frames in one write
    CUTS = "cuts"  # at every byte, or every so many: each write ends in the middle of a frame


@dataclass(frozen=True, slots=True)
class Ask:
    """A request, and what must come back."""

    request: Request
    expect: Expect = Expect()
    manner: Manner = Manner.ONCE
    cut_step: int = 1
    """Bytes from one cut to the next."""
    connection: str = "a"
    keep: Mapping[str, str] = field(default_factory=dict)
    """Template name to the answer's field that it stands for from now on."""


@dataclass(frozen=True, slots=True)
class Put:
    """A request whose answer is awaited later, by `Awaited` of the same name."""

    name: str
    request: Request
    connection: str = "a"


@dataclass(frozen=True, slots=True)
class Awaited:
    name: str
    expect: Expect = Expect()


@dataclass(frozen=True, slots=True)
class Pushed:
    """The server asks us; a request that is not one-way is answered with SUCCESS and this body."""

    code: int
    values: Mapping[str, str] = field(default_factory=dict)
    has: tuple[str, ...] = ()
    connection: str = "a"
    reply: str | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """Bytes as they are, and what becomes of the connection."""

    data: bytes
    closes: bool = False
    """The server closes it; else it answers the requests of the steps behind."""
    answers: int | None = None
    """Opaque of an answer that must come."""
    expect: Expect = ANY
    connection: str = "a"


@dataclass(frozen=True, slots=True)
class Hangup:
    """Close a connection; the next step that names it opens it anew."""

    connection: str = "a"


Step = Ask | Put | Awaited | Pushed | Written | Hangup


@dataclass(frozen=True, slots=True)
class Operation:
    """A request code as docs/protocol.md describes it; the systematic cases follow from it."""

    code: int
    name: str
    slug: str
    """Of the case ids: `remoting/SLUG/NUMBER`."""
    server: Server
    source: str
    """A section of docs/protocol.md."""
    fields: tuple[Field, ...] = ()
    body: str | bytes = b""
    expect: Expect = Expect()
    since: Since = Since.V4_9
    strength: Strength = Strength.MUST
    """Of what follows from its being there at all."""
    before: tuple[Step, ...] = ()
    """What must have happened on the connection for the valid request to be one."""
    cut_step: int = 1
    """More where an answer takes a released server long."""


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    title: str
    server: Server
    source: str
    steps: tuple[Step, ...]
    since: Since = Since.V4_9
    strength: Strength = Strength.MUST
