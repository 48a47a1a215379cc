"""Shell commands that inject faults which the wire cannot inject: `conform --kill 'docker kill {broker}'`.

Each option is a template whose fields stand for the broker under test, quoted for the shell. A fault without
a command is not among the target's capabilities.
"""

import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from string import Formatter
from typing import Final

from mqproof.conformance.engine.targets import TargetError

FIELDS: Final = {
    "broker": "the broker's name",
    "address": "where it listens, HOST:PORT",
    "name_server": "the name server's address, HOST:PORT",
}
"""What a template may name, and what it stands for."""
_PAIRS: Final = (
    ("isolate", "rejoin"),
    ("freeze", "thaw"),
    ("namesrv_start", "namesrv_kill"),
    ("namesrv_isolate", "namesrv_rejoin"),
)
SECONDS_MAX: Final = 120.0
_SAID_MAX: Final = 200


class FaultCommandError(ValueError):
    """A template that cannot be used; the message has the option and what is wrong."""


@dataclass(frozen=True, slots=True)
class FaultCommands:
    """The templates; an empty one is none.

    Raises:
        FaultCommandError: a template has an unknown field, or a template that another one needs is missing.
    """

    start: str = ""
    """Returns when the broker starts, at the latest; it is waited for until it serves."""
    stop: str = ""
    """A clean exit; returns when the process is gone."""
    kill: str = ""
    """SIGKILL; returns when the process is gone."""
    isolate: str = ""
    """Nothing reaches the broker from now on."""
    rejoin: str = ""
    """Undoes it."""
    freeze: str = ""
    """SIGSTOP."""
    thaw: str = ""
    """SIGCONT."""
    namesrv_start: str = ""
    """The same for the name server, whose only field is {name_server}."""
    namesrv_kill: str = ""
    namesrv_isolate: str = ""
    namesrv_rejoin: str = ""

    def __post_init__(self) -> None:
        for name, template in self.given():
            _check(name, template)
        if (self.stop or self.kill) and not self.start:
            raise FaultCommandError("--stop, --kill: of no use without --start")
        for one, other in _PAIRS:
            if bool(getattr(self, one)) != bool(getattr(self, other)):
                raise FaultCommandError(
                    f"--{_option(one)}, --{_option(other)}: each is of no use without the other"
                )

    def given(self) -> Iterator[tuple[str, str]]:
        """(option, template) of those that are not empty."""
        for one in fields(self):
            if template := getattr(self, one.name):
                yield _option(one.name), template


NO_COMMANDS: Final = FaultCommands()


def run(option: str, template: str, values: Mapping[str, str]) -> None:
    """Run the command and wait for its end. `values` has each of FIELDS.

    Raises:
        TargetError: it fails, or does not end within SECONDS_MAX.
    """
    command = template.format_map({name: shlex.quote(value) for name, value in values.items()})
    try:
        # A group of its own is not needed: whatever the command leaves running is the broker, and stays. What
        # it prints goes to a file: a broker that holds the pipe open would never let us read to its end.
        with tempfile.TemporaryFile() as said:
            done = subprocess.run(
                command, shell=True, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                timeout=SECONDS_MAX, check=False,
            )  # fmt: skip
            said.seek(0)
            told = said.read().decode(errors="replace").strip().splitlines()
    except subprocess.TimeoutExpired:
        raise TargetError(f"--{option} {command!r}: does not end within {SECONDS_MAX:.0f} s") from None
    if done.returncode != 0:
        why = f": {told[-1][:_SAID_MAX]}" if told else ""
        raise TargetError(f"--{option} {command!r}: ended with code {done.returncode}{why}")


def _option(name: str) -> str:
    return name.replace("_", "-")


def _check(option: str, template: str) -> None:
    try:
        named = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise FaultCommandError(f"--{option} {template!r}: {error}; a brace is written twice") from None
    fields_known = ("name_server",) if option.startswith("namesrv-") else tuple(FIELDS)
    for name in named:
        if name not in fields_known:
            known = ", ".join(f"{{{each}}}" for each in fields_known)
            raise FaultCommandError(f"--{option} {template!r}: unknown field {{{name}}}, expected {known}")
