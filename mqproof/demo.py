"""`mqproof demo`: the main job, small. Every layer judges the same catalogue; one real run is audited.

Each stage is another command of mqproof, run as a process of its own, so that what the demo does can be done
by hand: the commands are in the report.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer

from mqproof.conformance.hosts.processes import Cluster, ClusterError, LineCounter, cluster
from mqproof.report import html, json_file, terminal
from mqproof.report.console import stages, stop
from mqproof.report.model import Exit, Report, Result, Table, Verdict, exit_code
from mqproof.report.write import write_text
from mqproof.spec.catalogue import LAYERS, Invariant, catalogue

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

COLUMNS: Final = {
    "tla": "TLC",
    "reference": "reference",
    "conformance": "conformance",
    "flush": "conformance",
    "routing": "conformance",
    "trace": "conformance",
    "fuzz": "fuzz",
    "audit": "audit",
}
"""Layer, or suite, of a result to the column of the verdict table."""
PRODUCERS: Final = 3
GROUPS: Final = 2
KILLS: Final = 3
ROUTING: Final = "40"
"""Examples of the routing suite."""
RUN_SECONDS_MAX: Final = 120.0

Told = Callable[[str], None]


@app.callback()
def _root() -> None:
    """The main job."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where the report and all evidence go.")] = Path("build/demo"),
    messages: Annotated[int, typer.Option(min=100, help="How many messages the real run sends.")] = 12_000,
    examples: Annotated[int, typer.Option(min=1, help="Examples of the conformance suite.")] = 300,
    fuzz_seconds: Annotated[int, typer.Option(min=1, help="For each fuzz target.")] = 8,
) -> None:
    """Run the main job: models, equivalence, a run with kills, conformance, fuzzing, audit; show verdicts.

    Example: mqproof demo --out build/demo
    """
    started = time.perf_counter()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    run_folder = out / "run"
    seconds: dict[str, float] = {}
    reports: list[Report] = []
    counts: dict[str, int] = {}

    with stages("demo") as told:

        def stage(name: str, work: Callable[[], None]) -> None:
            began = time.perf_counter()
            told(name)
            work()
            seconds[name] = time.perf_counter() - began

        def command(name: str, *arguments: str) -> None:
            stage(f"mqproof {' '.join(arguments)}", lambda: reports.append(_mqproof(out, name, *arguments)))

        try:
            command("check", "check", "--profile", "smoke")
            command("equiv", "equiv", "--profile", "smoke")
            stage(
                f"{messages} messages, the broker is killed {KILLS} times",
                lambda: counts.update(_real_run(run_folder, messages, told)),
            )
            command("conform", "conform", "--target", "impl", "--suite", "flush", "--examples", str(examples))
            command("routing", "conform", "--target", "impl", "--suite", "routing", "--examples", ROUTING)
            command("trace", "trace-check", str(run_folder / "events" / "broker.ndjson"))
            for target in ("remoting-decode", "store-recovery"):
                command(target, "fuzz", "run", target, "--seconds", str(fuzz_seconds))
            audit_out = str(out / "audit")
            command("audit", "audit", "run", "--events", str(run_folder / "events"), "--out", audit_out)
        except ClusterError as error:
            stop(f"demo: {error}", Exit.TOOL)

    report = _report(reports, counts, seconds, time.perf_counter() - started)
    write_text(out / "report.html", html.render(report))
    write_text(out / "report.json", json_file.render(report))
    print(terminal.render_matrix(report, width=shutil.get_terminal_size((120, 24)).columns))
    for name, value in report.facts.items():
        print(f"{name}: {value}")
    print(f"report: {out / 'report.html'}")
    raise typer.Exit(exit_code(report.results))


def _mqproof(out: Path, name: str, *arguments: str) -> Report:
    """The report of one command; what it printed goes to a log beside its JSON.

    Raises:
        ClusterError: the command could not do its work.
    """
    answer, log = out / f"{name}.json", out / f"{name}.log"
    with log.open("wb") as sink:
        code = subprocess.run(
            [sys.executable, "-m", "mqproof", *arguments, "--json", str(answer)],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            check=False,
        ).returncode
    if code in (Exit.USAGE, Exit.TOOL) or not answer.exists():
        raise ClusterError(f"mqproof {' '.join(arguments)} ended with code {code}; see {log}")
    return json_file.from_json(answer.read_text(encoding="utf-8"), str(answer))


def _real_run(folder: Path, messages: int, told: Told) -> dict[str, int]:
    """Producers and consumers at work while the broker is killed and restarted; returns what was counted."""
    with cluster(folder, "SYNC_FLUSH") as running:
        running.start_name_server()
        running.start_broker()
        producers = [f"producer-{n}" for n in range(1, PRODUCERS + 1)]
        consumers = [f"consumer-{n}" for n in range(1, GROUPS + 1)]
        for n, name in enumerate(producers):
            share = messages // PRODUCERS + (n < messages % PRODUCERS)
            running.start_client(
                name, "send", "--topic", "Demo", "--size", "256", "--count", str(share),
                "--outstanding", "16", "--until-stored", "--quiet",
            )  # fmt: skip
        for name in consumers:
            running.start_client(
                name,
                "consume",
                "--topic",
                "Demo",
                "--group",
                f"group-{name}",
                "--follow",
                "--idle-ms",
                "6000",
            )
        _kill_and_restart(running, producers, messages, told)
        for name in (*producers, *consumers):
            told(f"waiting for {name}")
            running.wait(name, RUN_SECONDS_MAX)
        running.stop("broker")
        running.stop("namesrv")
    return {
        "messages acknowledged": _count(folder, producers, b'"kind":"send_ack"'),
        "deliveries": _count(folder, consumers, b'"kind":"deliver"'),
        "kills": _count(folder, ["broker"], b'"kind":"crash"'),
    }


def _kill_and_restart(running: Cluster, producers: list[str], messages: int, told: Told) -> None:
    """Kill the broker whenever another part of the messages has been appended; start it on the same store."""
    appended = LineCounter(running.events / "broker.ndjson", b'"kind":"append"')
    deadline = time.monotonic() + RUN_SECONDS_MAX
    for kill in range(1, KILLS + 1):
        while appended.update() < kill * messages // (KILLS + 1):
            if time.monotonic() > deadline or not any(map(running.running, producers)):
                raise ClusterError(
                    f"{appended.count} of {messages} messages were appended before kill {kill}"
                )
            time.sleep(0.01)
        told(f"{appended.count} messages appended, SIGKILL number {kill}")
        running.kill_broker()
        running.start_broker()


def _count(folder: Path, names: Iterable[str], word: bytes) -> int:
    return sum(LineCounter(folder / "events" / f"{name}.ndjson", word).update() for name in names)


def _report(reports: list[Report], counts: dict[str, int], seconds: dict[str, float], total: float) -> Report:
    """The verdict table has the catalogue's rows; what else was run (probes, sizes) is a table of its own."""
    known = catalogue()
    results = [result for report in reports for result in report.results]
    judged = [
        replace(result, name=known[result.id].name, layer=COLUMNS[result.layer])
        for result in results
        if result.id in known and result.layer in COLUMNS
    ]
    others = [result for result in results if result.id not in known or result.layer not in COLUMNS]
    shown = {result.id for result in judged}
    cells = {(result.id, result.layer) for result in judged}
    columns, rows = list(dict.fromkeys(COLUMNS.values())), list(known)
    judged += [
        _not_tested(known[row], layer)
        for row in shown
        for layer in LAYERS
        if (row, COLUMNS[layer]) not in cells
    ]
    judged.sort(key=lambda result: (rows.index(result.id), columns.index(result.layer)))
    return Report(
        title="mqproof demo",
        results=(*judged, *(result for result in others if result.verdict is Verdict.VIOLATED)),
        facts={**{name: f"{count:,}" for name, count in counts.items()}, "seconds": f"{total:.0f}"},
        tables=(
            Table("Stages", ("stage", "seconds"), tuple((n, f"{s:.1f}") for n, s in seconds.items())),
            Table(
                "Other runs: situations that must occur, recorded sizes, invariants of one target",
                ("id", "name", "layer", "verdict"),
                tuple((result.id, result.name, result.layer, result.verdict.value) for result in others),
            ),
            Table(
                "Invariants that nothing checks yet",
                ("id", "name", "statement"),
                tuple((i.id, i.name, i.statement) for i in known.values() if i.id not in shown),
            ),
        ),
        figures=tuple(figure for report in reports for figure in report.figures),
    )


def _not_tested(invariant: Invariant, layer: str) -> Result:
    why = {
        "checked": "not part of the demo",
        "n/a": invariant.why.get(layer, ""),
        "open": "still to be built",
    }
    return Result(
        id=invariant.id,
        name=invariant.name,
        layer=COLUMNS[layer],
        verdict=Verdict.NOT_TESTED,
        detail=why[invariant.cell(layer)],
    )
