"""Shell commands that inject faults which the wire cannot inject: `conform --kill 'docker kill {broker}'`.

Each option is a template. Its fields are replaced by values of the broker under test, quoted for the shell. A
fault without a command is not among the target's capabilities.
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
    "address": "the broker's address, HOST:PORT",
    "name_server": "the name server's address, HOST:PORT",
}
"""The fields that a template may contain, with their meanings."""
_PAIRS: Final = (
    ("isolate", "rejoin"),
    ("freeze", "thaw"),
    ("namesrv_start", "namesrv_kill"),
    ("namesrv_isolate", "namesrv_rejoin"),
)
SECONDS_MAX: Final = 120.0
_OUTPUT_MAX: Final = 200


class FaultCommandError(ValueError):
    """A template cannot be used; the message names the option and the error."""


@dataclass(frozen=True, slots=True)
class FaultCommands:
    """The templates; an empty string means that there is no command.

    Raises:
        FaultCommandError: a template has an unknown field, or a template that another one needs is missing.
    """

    start: str = ""
    """Starts the broker. It must return by the time the broker starts.

    The target then waits until the broker serves.
    """
    stop: str = ""
    """Stops the broker cleanly; returns when the process has ended."""
    kill: str = ""
    """Kills the broker with SIGKILL; returns when the process has ended."""
    isolate: str = ""
    """Blocks all traffic to the broker."""
    rejoin: str = ""
    """Undoes `isolate`."""
    freeze: str = ""
    """Sends SIGSTOP."""
    thaw: str = ""
    """Sends SIGCONT."""
    namesrv_start: str = ""
    """Starts the name server. The only field of the name server's templates is {name_server}."""
    namesrv_kill: str = ""
    namesrv_isolate: str = ""
    namesrv_rejoin: str = ""

    def __post_init__(self) -> None:
        for name, template in self.given():
            _check(name, template)
        if (self.stop or self.kill) and not self.start:
            raise FaultCommandError("--stop, --kill: --start is required as well")
        for one, other in _PAIRS:
            if bool(getattr(self, one)) != bool(getattr(self, other)):
                raise FaultCommandError(f"--{_option(one)}, --{_option(other)}: both are required")

    def given(self) -> Iterator[tuple[str, str]]:
        """Yield (option, template) for each template that is not empty."""
        for one in fields(self):
            if template := getattr(self, one.name):
                yield _option(one.name), template


NO_COMMANDS: Final = FaultCommands()


def run(option: str, template: str, values: Mapping[str, str]) -> None:
    """Run the command and wait for its end. `values` has a value for each field in FIELDS.

    Raises:
        TargetError: the command fails, or does not end within SECONDS_MAX.
    """
    command = template.format_map({name: shlex.quote(value) for name, value in values.items()})
    try:
        # The command needs no process group of its own: a process that it leaves running is the broker, which
        # must stay. The output goes to a file: with a pipe that the broker keeps open, reading would never
        # reach the end.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                command, shell=True, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                timeout=SECONDS_MAX, check=False,
            )  # fmt: skip
            output.seek(0)
            output_lines = output.read().decode(errors="replace").strip().splitlines()
    except subprocess.TimeoutExpired:
        raise TargetError(f"--{option} {command!r}: did not end within {SECONDS_MAX:.0f} s") from None
    if done.returncode != 0:
        why = f": {output_lines[-1][:_OUTPUT_MAX]}" if output_lines else ""
        raise TargetError(f"--{option} {command!r}: ended with code {done.returncode}{why}")


def _option(name: str) -> str:
    return name.replace("_", "-")


def _check(option: str, template: str) -> None:
    try:
        named = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise FaultCommandError(f"--{option} {template!r}: {error}; write a brace as {{{{ or }}}}") from None
    fields_known = ("name_server",) if option.startswith("namesrv-") else tuple(FIELDS)
    for name in named:
        if name not in fields_known:
            known = ", ".join(f"{{{each}}}" for each in fields_known)
            raise FaultCommandError(f"--{option} {template!r}: unknown field {{{name}}}, expected {known}")
