"""Runs a command: its connections, its exit code, its output."""

from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from mqproof.impl.admin.admin import Admin, UnreachableError
from mqproof.impl.admin.tables import visible
from mqproof.impl.client.model import ClientError
from mqproof.impl.remoting.address_server import NameServers
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.runtime.serving import run
from mqproof.impl.terminal import errors

REFUSED: Final = 1
WRONG_USE: Final = 2
NO_ANSWER: Final = 4
"""Exit code: no server responded."""

COMMAND: Final[ContextVar[str]] = ContextVar("admin_command", default="admin")
"""The running command, with which its error lines begin. It is known before the options are parsed."""
_WIDTH_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Site:
    """The environment of a command: the cluster's name servers, the runtime, and the credentials."""

    name_servers: NameServers
    runtime: Runtime
    credentials: Credentials | None


def perform(site: Site, work: Callable[[Admin], Coroutine[Any, Any, None]]) -> None:
    """Run one command. Errors that the user can correct become one line; others are raised."""

    async def main() -> None:
        async with Admin(site.name_servers, site.runtime, site.credentials) as admin:
            await work(admin)

    try:
        run(main())
    except UnreachableError as error:
        fail(str(error), NO_ANSWER)
    except ClientError as error:
        fail(str(error), REFUSED)


def require_one(broker: Address | None, cluster: str | None) -> None:
    """Check that a broker or a cluster is given. With both, the broker must be one of the cluster."""
    if broker is None and cluster is None:
        fail("give either -b HOST:PORT or -c CLUSTER", WRONG_USE)


async def targets(
    admin: Admin, broker: Address | None, cluster: str | None, *, slaves: bool = False
) -> Sequence[Address]:
    """Return the one broker, or the masters of the cluster, or all its brokers with `slaves`.

    With both, the broker wins, as in mqadmin. Raises ClientError if it does not belong to the cluster.
    """
    if broker is not None:
        if cluster is not None and broker not in await admin.masters(cluster, slaves=True):
            raise ClientError(f"broker {broker} is not in cluster {cluster}")
        return [broker]
    assert cluster is not None
    return await admin.masters(cluster, slaves=slaves)


def say(line: str) -> None:
    typer.echo(line)


def show(*tables: Table) -> None:
    """Print tables, limited to the width of a terminal, and at full width if the output is not a terminal."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH_MAX)
    with console.capture() as captured:
        for number, table in enumerate(tables):
            if number:
                console.print()
            console.print(table)
    for line in captured.get().splitlines():
        say(line.rstrip())


def fail(message: str, code: int) -> NoReturn:
    """End the command with one line and the exit code."""
    errors.fail(COMMAND.get(), visible(message), code)
