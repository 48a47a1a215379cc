"""`mqproof demo`: a small run of every layer. All layers check one catalogue; a real run is audited.

Each stage is another command of mqproof, run as a separate process, so that a user can repeat each stage
by hand: the commands are in the report. Two lanes of stages run at the same time.
"""

import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final

import typer

from mqproof.conformance.hosts.processes import ClusterError
from mqproof.demo.real_run import RealRun, real_run
from mqproof.report import html, json_file, terminal
from mqproof.report.console import stages, stop
from mqproof.report.files import folder_not_writable
from mqproof.report.model import Exit, Report, Result, Table, Verdict, exit_code
from mqproof.report.write import write_text
from mqproof.spec.catalogue import LAYERS, Invariant, catalogue

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

_SUITES: Final = (
    "routing",
    "offsets",
    "retry",
    "delivery",
    "ordering",
    "admin",
    "consumers",
    "producers",
    "replication",
    "transactions",
    "timers",
    "request_reply",
    "dledger",
    "convergence",
)
"""The suites that run with a few examples each; `flush` has a stage of its own."""
_FUZZ_SHARES: Final = {
    "dledger-group": 2,
    "cluster": 2,
    "deferred-messages": 2,
    "consumer-groups": 2,
    "routes-and-replies": 1,
    "ha-stream": 1,
    "remoting-decode": 1,
    "store-recovery": 1,
}
"""Target to the number of times that it gets --fuzz-seconds: a simulation needs more. The longest begin."""
COLUMNS: Final = {
    "tla": "TLC",
    "reference": "reference",
    **dict.fromkeys(("conformance", "trace", "flush", *_SUITES), "conformance"),
    "fuzz": "fuzz",
    "audit": "audit",
}
"""Layer, or suite, of a result to the column of the verdict table."""


@app.callback()
def _root() -> None:
    """A small run of every layer."""


_MARK: Final = ".mqproof-demo"
"""The file that marks a folder as one that an earlier demo made, and this one may replace."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the report and all evidence.")] = Path(
        "build/demo"
    ),
    messages: Annotated[
        int, typer.Option(min=100, help="Number of messages that the real run sends.")
    ] = 5_000,
    examples: Annotated[int, typer.Option(min=1, help="Number of examples of the suite flush.")] = 60,
    fuzz_seconds: Annotated[int, typer.Option(min=1, help="Seconds for each fuzz target.")] = 3,
) -> None:
    """Run a small part of every layer: models, equivalence, brokers with kills, suites, fuzzing, audit.

    A table of verdicts is shown at the end.

    Example: mqproof demo --out build/demo
    """
    started = time.perf_counter()
    _make_empty(out)
    with stages("demo") as show:
        run = Demo(out, show)
        try:
            with ThreadPoolExecutor(2) as lanes:
                stages_done = [
                    lanes.submit(_check_models, run, examples),
                    lanes.submit(_run_clusters, run, messages),
                    *(lanes.submit(_fuzz, run, target, fuzz_seconds) for target in _FUZZ_SHARES),
                ]
                try:
                    for done in stages_done:
                        done.result()
                finally:
                    lanes.shutdown(cancel_futures=True)
        except ClusterError as error:
            stop(f"{error}", Exit.TOOL)
    report = _report(run, time.perf_counter() - started)
    write_text(out / "report.html", html.render(report))
    write_text(out / "report.json", json_file.render(report))
    print(terminal.render_matrix(report, width=shutil.get_terminal_size((120, 24)).columns))
    for name, value in report.facts.items():
        print(f"{name}: {value}")
    print(f"report: {out / 'report.html'}")
    raise typer.Exit(exit_code(report.results))


def _make_empty(out: Path) -> None:
    """Make the folder, or replace that of an earlier demo. Other files are never deleted."""
    if reason := folder_not_writable(out):
        stop(f"--out {out}: {reason}", Exit.USAGE)
    if out.exists() and any(out.iterdir()):
        if not (out / _MARK).exists() and out != Path("build/demo"):
            stop(
                f"--out {out}: not a folder of an earlier demo; name a new or empty one",
                Exit.USAGE,
            )
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    (out / _MARK).touch()


@dataclass(slots=True)
class Demo:
    """One demo: the results of its stages by name, and their durations."""

    out: Path
    show: Callable[[str], None]
    reports: dict[str, Report] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def command(self, name: str, *arguments: str) -> None:
        """Run one command of mqproof and keep its report. Its output goes to a log file beside its JSON.

        Raises:
            ClusterError: the command could not do its work.
        """
        title = f"mqproof {' '.join(arguments)}"
        self.show(title)
        began = time.perf_counter()
        answer, log = self.out / f"{name}.json", self.out / f"{name}.log"
        with log.open("wb") as sink:
            command = [sys.executable, "-m", "mqproof", *arguments, "--json", str(answer)]
            code = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, check=False
            ).returncode
        if code in (Exit.USAGE, Exit.TOOL) or not answer.exists():
            raise ClusterError(f"{title} ended with code {code}; see {log}")
        self.reports[name] = json_file.from_json(answer.read_text(encoding="utf-8"), str(answer))
        self.seconds[title] = time.perf_counter() - began


def _check_models(run: Demo, examples: int) -> None:
    """Run the stages without brokers: the models, the reference, our code in simulated time."""
    run.command("check", "check", "--profile", "smoke")
    run.command("equiv", "equiv", "--profile", "smoke")
    run.command("explore", "explore")  # liveness, which equiv does not judge
    run.command("flush", "conform", "--target", "impl", "--suite", "flush", "--examples", str(examples))
    suites = [option for suite in _SUITES for option in ("--suite", suite)]
    run.command("suites", "conform", "--target", "impl", *suites, "--examples", str(max(1, examples // 6)))


def _run_clusters(run: Demo, messages: int) -> None:
    """Run real brokers, check their logs against the models, audit all logs and stores."""
    title = f"{messages} messages to a pair and a group of three, with kills"
    run.show(title)
    began = time.perf_counter()
    lived = real_run(run.out / "run", messages, run.show)
    run.counts |= lived.counts
    run.seconds[title] = time.perf_counter() - began
    _check_logs(run, lived)


def _fuzz(run: Demo, target: str, seconds: int) -> None:
    """Fuzz one target: one seed for a simulation, a share of the seconds for each."""
    share = str(_FUZZ_SHARES[target] * seconds)
    run.command(target, "fuzz", "run", target, "--seed", "1", "--seconds", share)


def _check_logs(run: Demo, lived: RealRun) -> None:
    stores = [option for store in lived.stores for option in ("--store", store)]
    events, out = str(run.out / "run" / "events"), str(run.out / "audit")
    run.command("audit", "audit", "run", "--events", events, *stores, "--out", out)
    run.command("trace", "trace-check", "--model", "Flush", str(lived.master))


def _report(run: Demo, total: float) -> Report:
    """Make the report: a table with the catalogue's rows, and one with other results (probes, sizes)."""
    known = catalogue()
    results = [result for report in run.reports.values() for result in report.results]
    judged = [
        replace(result, name=known[result.id].name, layer=COLUMNS[result.layer])
        for result in results
        if result.id in known and result.layer in COLUMNS
    ]
    others = [result for result in results if result.id not in known or result.layer not in COLUMNS]
    shown = _with_untested(_tested(judged), known)
    tested = {result.id for result in shown if result.verdict is not Verdict.NOT_TESTED}
    untested = [id_ for id_ in known if id_ not in tested]
    statuses = Counter(invariant.cell(layer) for invariant in known.values() for layer in LAYERS)
    return Report(
        title="mqproof demo",
        results=(
            *(result for result in shown if result.id in tested),
            *(result for result in others if result.verdict is Verdict.VIOLATED),
        ),
        facts={
            **{name: f"{count:,}" for name, count in run.counts.items()},
            "not in the demo": ", ".join(untested) or "none",
            "without a row": _without_row(statuses),
            "seconds": f"{total:.0f}",
        },
        tables=(
            Table("Stages", ("stage", "seconds"), tuple((n, f"{s:.1f}") for n, s in run.seconds.items())),
            Table(
                "Other runs: situations that must occur, recorded sizes, invariants of one target",
                ("id", "name", "layer", "verdict"),
                tuple((result.id, result.name, result.layer, result.verdict.value) for result in others),
            ),
        ),
        figures=tuple(figure for report in run.reports.values() for figure in report.figures),
    )


def _without_row(statuses: Counter[str]) -> str:
    return (
        f"{statuses['n/a']} checks are impossible and {statuses['open']} to be built: mqproof coverage --open"
    )


def _tested(results: Iterable[Result]) -> list[Result]:
    """Drop "not tested" where another suite or stage tested the same invariant in the same column."""
    found = list(results)
    judged = {(result.id, result.layer) for result in found if result.verdict is not Verdict.NOT_TESTED}
    return [
        result
        for result in found
        if result.verdict is not Verdict.NOT_TESTED or (result.id, result.layer) not in judged
    ]


def _with_untested(results: Iterable[Result], known: dict[str, Invariant]) -> list[Result]:
    """Add "not tested" for each check that a layer has and that no stage ran."""
    found = list(results)
    judged = {(result.id, result.layer) for result in found}
    columns, rows = list(dict.fromkeys(COLUMNS.values())), list(known)
    missing = [
        Result(
            invariant.id, invariant.name, COLUMNS[layer], Verdict.NOT_TESTED, detail="not part of the demo"
        )
        for invariant in known.values()
        for layer in LAYERS
        if invariant.cell(layer) == "checked" and (invariant.id, COLUMNS[layer]) not in judged
    ]
    order = {name: at for at, name in enumerate(rows)}
    return sorted([*found, *missing], key=lambda each: (order[each.id], columns.index(each.layer)))
