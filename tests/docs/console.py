"""Runs the commands of a documentation page, in order, in one shell and one folder.

- A console block has commands after `$ `, continued after a final backslash, and parts of their output.
- A block with `title="NAME"` is the file NAME, written where the page has it.
- Each line of the shown output must appear in the output, in this order. `...` matches any text. Any
  amount of white space matches one blank.
- A command exits with 0, unless the next one is `echo $?`. A command that ends with `&` keeps
  running; the next one starts when the shown lines have appeared.
- A block after the line `<!-- deep: REASON -->` is slow and runs only in the deep tests.
- The ports 9876 and 10911 are replaced by free ports.
"""

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from mqproof.conformance.hosts.processes import free_ports

ROOT: Final = Path(__file__).parents[2]
PORTS: Final = ("9876", "10911")
SECONDS_MAX: Final = 300
_BLOCK: Final = re.compile(
    r'^(?P<deep><!-- deep: .+ -->\n)?```(?P<language>\w+)(?: title="(?P<file>[^"]+)")?\n(?P<text>.*?)^```$',
    re.MULTILINE | re.DOTALL,
)
_END: Final = "--end-of-command--"


@dataclass(frozen=True, slots=True)
class Command:
    text: str
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NewFile:
    name: str
    text: str


class PageError(AssertionError):
    """A command exits or prints differently from what the page shows."""


def steps(page: str, *, deep: bool = False) -> Iterator[Command | NewFile]:
    """Yield the files to write and the commands to run, in order; slow blocks only with `deep`."""
    for block in _BLOCK.finditer(page):
        if block["deep"] and not deep:
            continue
        if block["file"]:
            yield NewFile(block["file"], block["text"])
        elif block["language"] == "console":
            yield from _commands(block["text"])


def _commands(block: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", block.replace("\\\n", "\\\0"), flags=re.M)[1:]:
        command, *shown = part.splitlines()
        yield Command(
            command.replace("\0", "\n"), tuple(line for line in shown if line.strip() not in ("", "..."))
        )


def run_page(page: Path, folder: Path, *, deep: bool = False) -> None:
    """Run the commands of the page in the folder; slow commands only with `deep`.

    Raises:
        PageError: an exit code or an output differs from the page.
    """
    text = _with_free_ports(page.read_text(encoding="utf-8"))
    remaining = list(steps(text, deep=deep))
    with Shell(folder) as shell:
        for step, following in zip(remaining, [*remaining[1:], None], strict=True):
            if isinstance(step, NewFile):
                target = folder / step.name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(step.text, encoding="utf-8")
                continue
            code, output = shell.run(step)
            missing = first_missing(step.shown, output)
            if missing is not None:
                raise PageError(f"$ {step.text}\nthe output lacks: {missing}\n" + "\n".join(output))
            shows_code = isinstance(following, Command) and following.text == "echo $?"
            if code and not shows_code:
                raise PageError(f"$ {step.text}\nexit code {code}\n" + "\n".join(output))


def first_missing(shown: Sequence[str], output: Sequence[str]) -> str | None:
    """Return the first shown line that is missing from the output after the lines before it, or None."""
    rest = iter(output)
    for line in shown:
        pattern = re.compile(".*".join(re.escape(_with_single_blanks(part)) for part in line.split("...")))
        if not any(pattern.fullmatch(_with_single_blanks(candidate)) for candidate in rest):
            return line
    return None


def _with_single_blanks(text: str) -> str:
    return " ".join(text.split())


def _with_free_ports(text: str) -> str:
    for port, free in zip(PORTS, free_ports(len(PORTS)), strict=True):
        text = re.sub(rf"\b{port}\b", str(free), text)
    return text


class Shell:
    """A bash process that runs one command at a time. On exit, it is killed with all its child processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines: queue.Queue[str] = queue.Queue()

    def __enter__(self) -> Self:
        commands, self._commands = os.pipe()
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc", f"/dev/fd/{commands}"],
            cwd=self._folder, env=_environment(self._folder), pass_fds=[commands], start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        os.close(commands)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._commands)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(SECONDS_MAX)
        self._reader.join(SECONDS_MAX)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def run(self, command: Command) -> tuple[int, list[str]]:
        """Run the command and return its exit code and output.

        For a command in the background, wait until the shown lines have appeared.
        """
        text = f'{command.text}\n_code=$?; echo; echo "{_END} $_code"; (exit $_code)\n'
        os.write(self._commands, text.encode())
        deadline, code = time.monotonic() + SECONDS_MAX, None
        output: list[str] = []
        while code is None or (
            command.text.endswith("&") and first_missing(command.shown, output) is not None
        ):
            try:
                line = self._lines.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                raise PageError(f"$ {command.text}\ntoo slow\n" + "\n".join(output)) from None
            if line.startswith(_END):
                code = int(line.split()[1])
            else:
                output.append(line)
        return code, output

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))


def _environment(folder: Path) -> dict[str, str]:
    """Return an environment in which `mqproof` and `python` run this checkout with the tests' Python."""
    programs = folder / ".bin"
    programs.mkdir()
    for name, arguments in (("mqproof", " -m mqproof"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
        program.chmod(0o755)
    return os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "100",
    }
