"""The structure of a wire case: requests to a server, the expected responses, and the strength of the rule.

Texts are templates: names such as `$topic` stand for values of the run's fixtures (fixtures.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from mqproof.conformance.wire.frames import LANGUAGE, VERSION, Header

NOT_SUPPORTED: Final = 3
"""The response code of a server that does not know the request code."""

COMMIT_OFFSET: Final = "commit offset of msgId"
"""A value that `Call.keep` may name in addition to the answer's fields."""


class Verdict(StrEnum):
    OK = "OK"
    NON_STRICT = "NON-STRICT"  # a SHOULD is not met
    INFORMATIONAL = "INFORMATIONAL"  # a MAY: the answer is reported, and nothing is required
    UNIMPLEMENTED = "UNIMPLEMENTED"  # the server answers that it does not know the request code
    FAILED = "FAILED"  # a MUST is not met, or there is no answer in time, or no readable one


class Strength(StrEnum):
    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Since(StrEnum):
    """The release since which the rule holds."""

    V4_9 = "4.9"
    V5 = "5"


class Server(StrEnum):
    BROKER = "broker"
    NAME_SERVER = "name server"
    FILTER_SERVER = "filter server"


class Kind(StrEnum):
    """Type of a header field: text, 32 or 64 bit signed integer, boolean."""

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
    """Value in the valid request; None: the request omits it."""
    since: Since = Since.V4_9


@dataclass(frozen=True, slots=True)
class Expect:
    """Requirements on an answer. Fields and body are checked only in answers with the first of the codes."""

    codes: tuple[int, ...] = (0,)
    """Any of these codes; () accepts every code."""
    not_codes: tuple[int, ...] = ()
    lacking: tuple[int, ...] = ()
    """Codes with which the server answers that it does not support what is requested."""
    fields: Mapping[str, Kind] = field(default_factory=dict)
    """Members that the answer's header must have, with their types."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Members with their exact values."""
    has: tuple[str, ...] = ()
    """Texts that the body must contain."""
    lacks: tuple[str, ...] = ()
    """Texts that the body must not contain."""
    records: int | None = None
    """Number of stored messages in the body."""
    not_before_s: float = 0.0
    """Minimum time between request and answer."""


ANY: Final = Expect(codes=())
"""Any answer is accepted."""


@dataclass(frozen=True, slots=True)
class Request:
    code: int
    fields: Mapping[str, str] = field(default_factory=dict)
    body: str | bytes = b""
    """The body: a text is a template, bytes are sent unchanged."""
    header: Header = Header.JSON
    opaque: int | None = None
    """The opaque of the frame; None if the runner assigns one."""
    version: int = VERSION
    language: str = LANGUAGE


class Manner(StrEnum):
    """How a request is sent."""

    ONCE = "once"
    EVENTUALLY = "eventually"  # repeatedly, until the answer is as expected
    ONEWAY = "one-way"  # there must be no answer; normal requests after it are answered
    OPAQUE_REUSED = "opaque reused"  # twice in one write with one opaque, and once more
    BATCH = "batch"  # five frames in one write
    CUTS = "cuts"  # split at every byte, or every few: each write ends in the middle of a frame


@dataclass(frozen=True, slots=True)
class Call:
    """A request and its required answer."""

    request: Request
    expect: Expect = Expect()
    manner: Manner = Manner.ONCE
    cut_step: int = 1
    """Number of bytes from one split position to the next."""
    connection: str = "a"
    keep: Mapping[str, str] = field(default_factory=dict)
    """Maps a template name to the answer's field whose value it has from now on."""


@dataclass(frozen=True, slots=True)
class Put:
    """A request whose answer is awaited later, by `Awaited` with the same name."""

    name: str
    request: Request
    connection: str = "a"


@dataclass(frozen=True, slots=True)
class Awaited:
    name: str
    expect: Expect = Expect()


@dataclass(frozen=True, slots=True)
class Pushed:
    """A request from the server; unless it is one-way, it is answered with SUCCESS and this body."""

    code: int
    values: Mapping[str, str] = field(default_factory=dict)
    has: tuple[str, ...] = ()
    connection: str = "a"
    reply: str | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """Raw bytes, and the expected effect on the connection."""

    data: bytes
    closes: bool = False
    """The server closes the connection; otherwise it answers the requests of later steps."""
    answers: int | None = None
    """The opaque of an answer that is required; None if none is required."""
    expect: Expect = ANY
    connection: str = "a"


@dataclass(frozen=True, slots=True)
class Hangup:
    """Close a connection; the next step that names it opens a new one."""

    connection: str = "a"


Step = Call | Put | Awaited | Pushed | Written | Hangup


@dataclass(frozen=True, slots=True)
class Operation:
    """A request code as the protocol reference describes it; the systematic cases are derived from it."""

    code: int
    name: str
    slug: str
    """Part of the case ids: `remoting/SLUG/NUMBER`."""
    server: Server
    source: str
    """A section of docs/reference/protocol/, one of `chapters`."""
    fields: tuple[Field, ...] = ()
    body: str | bytes = b""
    expect: Expect = Expect()
    since: Since = Since.V4_9
    strength: Strength = Strength.MUST
    """Strength of the cases derived from the operation."""
    before: tuple[Step, ...] = ()
    """Steps on the connection that the valid request requires."""
    cut_step: int = 1
    """As `cut_step` of a call; larger for operations that released servers answer slowly."""


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    title: str
    server: Server
    source: str
    steps: tuple[Step, ...]
    since: Since = Since.V4_9
    strength: Strength = Strength.MUST
