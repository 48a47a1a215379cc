"""Options that several commands share, with mqadmin's letters and names, and their conversions."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from mqproof.impl.admin import times
from mqproof.impl.admin.run import WRONG_USE, fail
from mqproof.impl.remoting import address_server
from mqproof.impl.runtime.network import Address
from mqproof.impl.terminal.errors import one_line

T = TypeVar("T")


def parsed(letter: str, convert: Callable[[str], T]) -> Callable[[str], T]:
    """Return a converter that reports a ValueError as incorrect use, in one line."""

    def parser(text: str) -> T:
        try:
            return convert(text)
        except ValueError as error:
            fail(f"-{letter}: {error}", WRONG_USE)

    return parser


def flag(letter: str, name: str, words: str) -> Any:
    """Return an option that is `true` or `false`. Its default must be such a text too."""
    parser = parsed(letter, _boolean)
    return typer.Option(f"-{letter}", f"--{name}", parser=parser, metavar="true|false", help=words)


def when(letter: str, name: str, words: str) -> Any:
    """Return an option that is a time."""
    parser = parsed(letter, times.parse_ms)
    return typer.Option(f"-{letter}", f"--{name}", parser=parser, metavar="TIME", help=words)


def count(letter: str, name: str, words: str, least: int = 1) -> Any:
    """Return an option that is a number."""
    return typer.Option(f"-{letter}", f"--{name}", min=least, metavar="N", help=words)


def list_file(read: Callable[[str], list[T]]) -> Any:
    """Return an option that is a file; its value is the list that `read` returns."""

    def convert(path: str) -> list[T]:
        try:
            return read(path)
        except OSError as error:
            raise ValueError(one_line(error)) from None

    return typer.Option("-f", "--filename", parser=parsed("f", convert), metavar="FILE", help="The file.")


def text(letter: str, name: str, metavar: str, words: str) -> Any:
    """Return an option that is a text."""
    parser = parsed(letter, _unicode)
    return typer.Option(f"-{letter}", f"--{name}", parser=parser, metavar=metavar, help=words)


def _unicode(value: str) -> str:
    """Check that a text is Unicode. A command line may contain any bytes, but the wire format may not."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{value!r}, UTF-8 text expected") from None
    return value


def _boolean(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError(f"{value!r}, true or false expected")
    return value.lower() == "true"


def _name_servers(value: str) -> address_server.NameServers:
    found = address_server.parse(value)
    if not found:
        raise ValueError("no address, HOST:PORT expected")
    return found


NameServers = Annotated[
    Any,
    typer.Option(
        "-n",
        "--namesrvAddr",
        parser=parsed("n", _name_servers),
        metavar="HOST:PORT",
        envvar="NAMESRV_ADDR",
        help="Name servers, separated by ';', or the URL of an address server.",
    ),
]

_BROKER = typer.Option(
    "-b", "--brokerAddr", parser=parsed("b", Address.parse), metavar="HOST:PORT", help="Select this broker."
)
Broker = Annotated[Any, _BROKER]
BROKER_REQUIRED = _BROKER
"""The option of a command that works on one broker only."""
_BROKER_ONLY = typer.Option(
    "-b",
    "--broker",
    parser=parsed("b", Address.parse),
    metavar="HOST:PORT",
    help="Reset only at this broker.",
)
BrokerOnly = Annotated[Any, _BROKER_ONLY]
Cluster = Annotated[str | None, text("c", "clusterName", "NAME", "Select every master of this cluster.")]
AtCluster = Annotated[str | None, text("c", "cluster", "NAME", "Query only the brokers of this cluster.")]
Topic = Annotated[str, text("t", "topic", "NAME", "The topic.")]
Group = Annotated[str, text("g", "groupName", "NAME", "The consumer group.")]
Permission = Annotated[
    int, typer.Option("-p", "--perm", min=0, max=7, metavar="N", help="2: write; 4: read; 6: both.")
]
Begin = Annotated[Any, when("b", "beginTimestamp", "Only messages stored from this time on.")]
End = Annotated[Any, when("e", "endTimestamp", "Only messages stored until this time.")]
