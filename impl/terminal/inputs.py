"""Turns the texts and files given by options into values. A mistake ends the command with one line."""

from pathlib import Path
from typing import TYPE_CHECKING

from mqproof.impl.terminal.errors import fail, one_line

if TYPE_CHECKING:  # imported late: a command loads only what it uses
    from mqproof.impl.remoting.address_server import NameServers
    from mqproof.impl.remoting.signing import Credentials
    from mqproof.impl.runtime.event_log import EventLog
    from mqproof.impl.runtime.network import Address
    from mqproof.impl.runtime.runtime import Runtime


def new_runtime(command: str, tls: Path | None) -> "Runtime":
    """Return the runtime of real sockets, disks and clocks, with TLS as configured in the file."""
    from mqproof.impl.runtime.network import AsyncioNetwork
    from mqproof.impl.runtime.properties import ConfigError
    from mqproof.impl.runtime.runtime import production
    from mqproof.impl.runtime.security.tls_file import load

    try:
        return production(AsyncioNetwork(), load(str(tls)) if tls else None)
    except (ConfigError, OSError, UnicodeDecodeError) as error:
        fail(command, one_line(error))


def read_account(command: str, path: Path | None) -> "Credentials | None":
    """Return the account that signs requests, or None without a file."""
    from mqproof.impl.remoting.account_file import parse
    from mqproof.impl.runtime.disk import RealDisk
    from mqproof.impl.runtime.properties import ConfigError
    from mqproof.impl.runtime.security.secret_files import warn_if_exposed

    if path is None:
        return None
    try:
        account = parse(read_text(path), str(path))
    except (ConfigError, OSError) as error:
        fail(command, one_line(error))
    warn_if_exposed(RealDisk(), str(path))
    return account


def read_text(path: Path) -> str:
    """Return the file's text.

    Raises:
        ConfigError: the file is not UTF-8.
        OSError: it cannot be read.
    """
    from mqproof.impl.runtime.properties import ConfigError

    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text: {error}") from None


def server_event_log(path: Path | None, node: str) -> "EventLog | None":
    """Open the event log of a server; its node is the server's name. Raises OSError or EventError."""
    from mqproof.impl.runtime.clock import SystemClock
    from mqproof.impl.runtime.event_log import EventLog

    return EventLog.to_file(str(path), node, SystemClock()) if path else None


def client_event_log(command: str, path: Path | None) -> "EventLog | None":
    """Open the event log of a client.

    Its node is the name of the file, because two clients must not share one sequence of event numbers.
    """
    from mqproof.spec.events import EventError

    try:
        return server_event_log(path, path.stem) if path else None
    except (OSError, EventError) as error:
        fail(command, one_line(error))


def check_text(command: str, **options: str | None) -> None:
    """Check that options contain Unicode text.

    A command line may contain any bytes, but the wire format is UTF-8.
    """
    for option, value in options.items():
        try:
            (value or "").encode()
        except UnicodeEncodeError:
            fail(command, f"--{option} is {value!r}, UTF-8 text expected")


def name_servers(command: str, text: str) -> "NameServers":
    """Parse the value of --namesrv."""
    from mqproof.impl.remoting.address_server import parse

    try:
        return parse(text) or fail(command, "--namesrv: HOST:PORT expected")
    except ValueError as error:
        fail(command, f"--namesrv: {error}")


def address(command: str, option: str, text: str | None) -> "Address | None":
    """Parse HOST:PORT, the value of the option. Returns None without a value."""
    from mqproof.impl.runtime.network import Address

    try:
        return Address.parse(text) if text else None
    except ValueError as error:
        fail(command, f"{option}: {error}")
