"""The observations of one group, in the order of time.

One client sends one request after the other. So a member has given each answer after all earlier answers. The
exception is an append that waits for a quorum: the client asks for the end of the log meanwhile.
"""

from dataclasses import dataclass

Entry = tuple[int, bytes]
"""The term and the body of an entry of the log."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A member's answer says which member leads its term."""

    member: str
    term: int
    leader: str | None

    def __str__(self) -> str:
        return f"{self.member} is in term {self.term}, led by {self.leader or 'no member'}"


@dataclass(frozen=True, slots=True)
class End:
    """The index of a member's last entry, with its term and leader."""

    member: str
    term: int
    leader: str | None
    index: int

    def __str__(self) -> str:
        leader = self.leader or "no member"
        return f"the log of {self.member} ends at {self.index}, in term {self.term} of {leader}"


@dataclass(frozen=True, slots=True)
class Vote:
    """A member accepted a candidate."""

    member: str
    term: int
    candidate: str

    def __str__(self) -> str:
        return f"{self.member} votes for {self.candidate} in term {self.term}"


@dataclass(frozen=True, slots=True)
class Append:
    """A leader acknowledged an entry."""

    member: str
    term: int
    index: int
    body: bytes

    def __str__(self) -> str:
        return f"{self.member} acknowledges {self.body!r} at {self.index} in term {self.term}"


@dataclass(frozen=True, slots=True)
class Read:
    """A leader answered a GET: with the committed entry, or with None if none is committed there."""

    member: str
    term: int
    index: int
    entry: Entry | None

    def __str__(self) -> str:
        return f"{self.member}, leader of term {self.term}, has {self.entry or 'nothing'} at {self.index}"


@dataclass(frozen=True, slots=True)
class Log:
    """The committed log of a leader, read from its beginning to its end."""

    member: str
    term: int
    entries: tuple[Entry, ...]

    def __str__(self) -> str:
        return f"{self.member}, leader of term {self.term}, has a log of {len(self.entries)} entries"


@dataclass(frozen=True, slots=True)
class Recovered:
    """Drawn ledgers were cut, damaged and loaded; `wrong` has what differs in their files and entries."""

    wrong: tuple[str, ...]

    def __str__(self) -> str:
        return f"drawn ledgers have {len(self.wrong)} wrong values"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault was injected, or has ended."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Calm:
    """The faults ended long ago: whether the group acknowledges entries, and the end of each member's log."""

    serves: bool
    ends: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        serves = "serves" if self.serves else "does not serve"
        return f"after the faults the group {serves}; ends: {dict(self.ends)}"


Operation = Claim | End | Vote | Append | Read | Log | Recovered | Fault | Calm


@dataclass(frozen=True, slots=True)
class Life:
    """All observations of one group."""

    operations: tuple[Operation, ...]
