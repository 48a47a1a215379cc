"""Runs scenarios for a client and a broker, and keeps the results.

python -m mqproof.conformance.client_scenarios.matrix [--broker B] [--client C] [--scenario S] [--json FILE]

Every option may be repeated; without one, all of `pairs` and all scenarios run. Results in the file that this
run does not repeat are kept. The exit code is 1 if a scenario is violated.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from mqproof.conformance.adapters.apache.artifacts import (
    CLIENT_RELEASES,
    ApacheMissingError,
    client_class_path,
    releases,
)
from mqproof.conformance.adapters.apache.go_client import go_client
from mqproof.conformance.adapters.apache.java_clients import java_client
from mqproof.conformance.adapters.apache.servers import ApacheServerError
from mqproof.conformance.adapters.clients.driver_client import DriverError, UnsupportedError
from mqproof.conformance.adapters.clients.our_client import our_client
from mqproof.conformance.client_scenarios.scenarios import SCENARIOS, Scenario
from mqproof.conformance.client_scenarios.sites import OURS, Site, site
from mqproof.conformance.client_scenarios.stage import Stage, StartClient
from mqproof.conformance.hosts.processes import ClusterError
from mqproof.report.model import Exit, Verdict
from mqproof.report.write import write_text

GO: Final = "go"
CLIENTS: Final = (*(f"java-{release}" for release in CLIENT_RELEASES), GO, OURS)


def pairs() -> list[tuple[str, str]]:
    """Return the clients and brokers of the table: Apache's clients with our broker, ours with Apache's."""
    return [
        *((client, OURS) for client in CLIENTS if client != OURS),
        *((OURS, release) for release in releases()),
    ]


@dataclass(frozen=True, slots=True)
class Cell:
    """The result of one scenario."""

    client: str
    broker: str
    scenario: str
    verdict: str
    expected: int
    received: int
    lost: int
    duplicated: int
    unexpected: int
    kills: int
    seconds: float
    detail: str = ""
    """What is wrong or missing, and then what was measured."""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.client, self.broker, self.scenario


def run_cell(at: Site, broker: str, client: str, scenario: Scenario, folder: Path) -> Cell:
    """Run a scenario. Raises ApacheMissingError, ApacheServerError and ClusterError."""
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    name = f"{scenario.name}-{client}".replace(".", "_")
    missing = ""
    with ExitStack() as ending:
        stage = Stage(at, start_client(client, folder, at.name_server), name, folder, ending)
        try:
            scenario.play(stage)
        except UnsupportedError as error:
            missing = str(error)
        except DriverError as error:
            stage.problems.append(str(error)[:200])
    if stage.failed_sends:
        stage.notes.append(f"{len(stage.failed_sends)} sends tried again: {stage.failed_sends[0]}")
    counts = stage.counts
    problems = [missing] if missing else stage.problems
    if missing:
        verdict = Verdict.NOT_TESTED
    elif problems or counts.lost or counts.unexpected:
        verdict = Verdict.VIOLATED
    else:
        verdict = Verdict.HELD if counts.expected else Verdict.UNKNOWN
    return Cell(
        client,
        broker,
        scenario.name,
        str(verdict),
        counts.expected,
        counts.received,
        counts.lost,
        counts.duplicated,
        counts.unexpected,
        stage.kills,
        round(time.monotonic() - began, 1),
        "; ".join((*problems, *(() if missing else stage.notes))),
    )


def start_client(client: str, folder: Path, name_server: str) -> StartClient:
    """Return the function that starts processes of a client, one of CLIENTS."""
    if client == OURS:
        return lambda name, traces: our_client(folder, name_server, traces=traces, name=name)
    if client == GO:
        return lambda name, traces: go_client(folder, name_server, traces=traces, name=name)
    release = client.removeprefix("java-")
    start = partial(java_client, release, folder, name_server, classes=client_class_path(release))
    return lambda name, traces: start(traces=traces, name=name)


def run(
    chosen: Iterable[tuple[str, str]], scenarios: Iterable[Scenario], folder: Path
) -> Iterator[Cell | str]:
    """Run the scenarios for each client and broker, one at a time; a text says what could not run."""
    listed, wanted = list(scenarios), list(chosen)
    for broker in dict.fromkeys(broker for _, broker in wanted):
        try:
            with site(broker, folder / broker) as at:
                for client in (client for client, where in wanted if where == broker):
                    for scenario in listed:
                        place = folder / broker / f"{client}-{scenario.name}"
                        yield run_cell(at, broker, client, scenario, place)
        except (ApacheMissingError, ApacheServerError, ClusterError) as error:
            yield f"broker {broker}: {error}"


def read(path: Path) -> list[Cell]:
    """Return the results in a file, none if it does not exist."""
    return msgspec.json.decode(path.read_bytes(), type=list[Cell]) if path.is_file() else []


def text(cells: Iterable[Cell]) -> str:
    """Return the text that `read` parses, with one result per line."""
    lines = (msgspec.json.encode(cell).decode() for cell in cells)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def merged(old: Iterable[Cell], new: Iterable[Cell]) -> list[Cell]:
    """Return all results, in the order of the table; a new one replaces the old one."""
    found = {cell.key: cell for cell in (*old, *new)}
    names = [scenario.name for scenario in SCENARIOS]
    rank: Callable[[Cell], tuple[int, str, int]] = lambda cell: (  # noqa: E731
        CLIENTS.index(cell.client) if cell.client in CLIENTS else len(CLIENTS),
        cell.broker,
        names.index(cell.scenario) if cell.scenario in names else len(names),
    )
    return sorted(found.values(), key=rank)


def main(arguments: list[str]) -> int:
    """Run what the arguments choose, print a line for each result, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m mqproof.conformance.client_scenarios.matrix")
    parser.add_argument("--broker", action="append", choices=(OURS, *releases()))
    parser.add_argument("--client", action="append", choices=CLIENTS)
    parser.add_argument("--scenario", action="append", choices=[scenario.name for scenario in SCENARIOS])
    parser.add_argument("--json", type=Path, help="the file for the results")
    parser.add_argument("--folder", type=Path, help="keep the logs and the stores here")
    options = parser.parse_args(arguments)
    chosen = pairs()
    if options.client and options.broker:
        chosen = [(client, broker) for client in options.client for broker in options.broker]
    elif options.client or options.broker:
        chosen = [
            pair for pair in chosen if pair[0] in (options.client or []) or pair[1] in (options.broker or [])
        ]
    scenarios = [one for one in SCENARIOS if one.name in (options.scenario or [one.name])]
    cells: list[Cell] = []
    code = Exit.HELD
    with tempfile.TemporaryDirectory() as scratch:
        for cell in run(chosen, scenarios, options.folder or Path(scratch)):
            if isinstance(cell, str):
                print(cell, file=sys.stderr)
                code = code or Exit.TOOL
                continue
            cells.append(cell)
            print(line(cell), flush=True)
            if cell.verdict == Verdict.VIOLATED:
                code = Exit.VIOLATED
            if options.json is not None:
                write_text(options.json, text(merged(read(options.json), [cell])))
    return code


def line(cell: Cell) -> str:
    """Return a result as one line."""
    counts = (
        f"{cell.received} of {cell.expected}, {cell.lost} lost, {cell.duplicated} duplicated, "
        f"{cell.unexpected} unexpected, {cell.kills} kills, {cell.seconds:.0f} s"
    )
    detail = f" ({cell.detail})" if cell.detail else ""
    return f"{cell.client} at {cell.broker}: {cell.scenario}: {cell.verdict}: {counts}{detail}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
