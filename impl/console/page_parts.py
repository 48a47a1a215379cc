"""The parts of a page, as values. rendering.py turns them into HTML, each kind by one macro."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final
from urllib.parse import urlencode

from markupsafe import Markup

NAVIGATION: Final = (
    ("/", "Dashboard"),
    ("/cluster", "Cluster"),
    ("/topics", "Topics"),
    ("/consumers", "Consumers"),
    ("/producers", "Producers"),
    ("/messages", "Messages"),
    ("/accounts", "Accounts"),
    ("/operations", "Operations"),
)
"""The addresses and names of the navigation."""


def link(path: str, **query: str | int) -> str:
    """Return the address of a page. Values may be any text."""
    return f"{path}?{urlencode(query)}" if query else path


def counted(count: int, noun: str) -> str:
    """Return a number and its noun, such as `1 group` or `2 groups`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Button:
    """A form of one button: it sends these values to the action."""

    text: str
    action: str
    values: Mapping[str, str]
    label: str = ""
    """What a screen reader says, if the text does not name its object."""


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    href: str = ""
    tone: str = ""
    """good, warn, bad or quiet: shown as a badge."""
    is_code: bool = False
    is_whole: bool = False
    """Whether it stays on one line, such as a time."""
    chart: Markup | None = None
    button: Button | None = None


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    is_number: bool = False


def columns(*titles: str) -> tuple[Column, ...]:
    """Return columns; a title that begins with # is of numbers."""
    return tuple(Column(title.removeprefix("#"), title.startswith("#")) for title in titles)


@dataclass(frozen=True, slots=True)
class Table:
    kind: ClassVar[str] = "table"
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | str]]
    empty: str
    """What to show without rows: what is missing, and the next step."""
    command: str = ""
    """With no rows: the command of the next step."""
    note: str = ""

    def cells(self) -> list[list[Cell]]:
        return [[Cell(each) if isinstance(each, str) else each for each in row] for row in self.rows]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values."""

    kind: ClassVar[str] = "facts"
    title: str
    values: Sequence[tuple[str, Cell | str]]
    is_folded: bool = False

    def cells(self) -> list[tuple[str, Cell]]:
        return [(name, Cell(each) if isinstance(each, str) else each) for name, each in self.values]


@dataclass(frozen=True, slots=True)
class Tiles:
    """The most important numbers, large."""

    kind: ClassVar[str] = "tiles"
    values: Sequence[tuple[str, str, str]]
    """Name, number, and a remark below it."""


@dataclass(frozen=True, slots=True)
class Legend:
    name: str
    last: str


@dataclass(frozen=True, slots=True)
class Chart:
    kind: ClassVar[str] = "chart"
    title: str
    svg: Markup
    legend: Sequence[Legend]
    href: str = ""


@dataclass(frozen=True, slots=True)
class Charts:
    """Charts side by side, where there is room."""

    kind: ClassVar[str] = "charts"
    title: str
    charts: Sequence[Chart]
    empty: str


@dataclass(frozen=True, slots=True)
class Text:
    """Text as it is, such as the body of a message."""

    kind: ClassVar[str] = "text"
    title: str
    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    kind: ClassVar[str] = "note"
    tone: str
    text: str


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses to choose from; the current one is marked."""

    kind: ClassVar[str] = "links"
    label: str
    links: Sequence[tuple[str, str]]
    current: str = ""
    """The text of the current one."""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    label: str
    value: str = ""
    type: str = "text"
    """text, number, password, datetime-local, checkbox, hidden, select or textarea."""
    options: Sequence[tuple[str, str]] = ()
    """Of a select: value and text."""
    hint: str = ""
    is_required: bool = False
    least: int | None = None
    most: int | None = None
    """The largest number, or the most characters of a text."""
    autocomplete: str = "off"


@dataclass(frozen=True, slots=True)
class Form:
    kind: ClassVar[str] = "form"
    title: str
    action: str
    fields: Sequence[Field]
    submit: str
    method: str = "post"
    note: str = ""
    is_folded: bool = False
    is_danger: bool = False

    @property
    def slug(self) -> str:
        """A name of the form for the ids of its fields."""
        return "".join(each if each.isalnum() else "-" for each in self.title.lower())


Part = Table | Facts | Tiles | Chart | Charts | Text | Note | Links | Form


@dataclass(frozen=True, slots=True)
class Page:
    title: str
    section: str
    """The address of its section in the navigation."""
    parts: Sequence[Part] = field(default_factory=tuple)
    subtitle: str = ""
    back: tuple[str, str] | None = None
    """The address and name of the page above."""
    status: int = 200
    refresh_s: int = 0
    """After how many seconds the browser loads the page again; 0 means never."""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Redirect:
    """Go to another page, which shows the notice."""

    to: str
    tone: str = ""
    notice: str = ""


Answer = Page | Redirect
