"""`mqproof bench`: benchmarks of our broker, compared with other systems and with the machine's limit.

`send` measures complete sends of a client: `mqproof serve` in one process, `mqproof send` in another. It
sends messages of one size over one connection, with a fixed number of outstanding sends. It runs once under
SYNC_FLUSH and once under ASYNC_FLUSH, each with a new store. For comparison, it measures the rate of single
writes with fdatasync on the same disk: the maximum rate of a broker that syncs each message separately.
Rounds alternate, and the median counts.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from mqproof.conformance.bench import broker as broker_bench
from mqproof.conformance.bench.broker import BenchError
from mqproof.report import markdown, measurements
from mqproof.report.console import stop
from mqproof.report.measurements import MeasurementsError, described
from mqproof.report.model import Exit, Report, exit_code
from mqproof.report.write import write_report, write_text

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
bench = typer.Typer(help="Run side-by-side benchmarks; each one generates its own data.")
app.add_typer(bench, name="bench")

_MQPROOF: Final = (sys.executable, "-c", "from mqproof.cli import main; main()")
_MODES: Final = ("SYNC_FLUSH", "ASYNC_FLUSH")
_DISK: Final = "write and fdatasync"
_PAGE: Final = """\
Each value is the median of its rounds. If there were several, the least and the greatest are in parentheses.
A rate (/s) is better if it is larger, any other value if it is smaller. A ratio above 1 means: better than
that side."""

_StoreFolder = Annotated[
    Path, typer.Option(metavar="DIR", help="Folder for the stores; its disk is the one that is measured.")
]
_JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result to this file.")
]


@dataclass(frozen=True, slots=True)
class Load:
    """The messages of one round."""

    count: int
    size: int
    outstanding: int


@app.callback()
def main() -> None:
    """Run benchmarks (keeps `bench` as a subcommand)."""


@bench.command()
def send(
    count: Annotated[int, typer.Option(min=1, help="Messages per round.")] = 20_000,
    size: Annotated[int, typer.Option(min=1, help="Bytes per message body.")] = 1024,
    outstanding: Annotated[int, typer.Option(min=1, help="Number of concurrent sends.")] = 64,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds per mode.")] = 3,
    directory: _StoreFolder = Path("build/bench"),
    json_file: _JsonFile = None,
) -> None:
    """Measure sends per second under SYNC_FLUSH and ASYNC_FLUSH, and the disk's fdatasync rate.

    Example: mqproof bench send --count 5000 --rounds 1
    """
    load = Load(count, size, outstanding)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        result = measure(load, rounds, directory)
    except (BenchError, OSError) as error:
        stop(f"{error}", Exit.TOOL)
    print(table(result))
    if json_file is not None:
        measurements.write(json_file, result)


@bench.command()
def broker(
    apache: Annotated[
        str, typer.Option(metavar="RELEASE", help="Apache release to compare with; - for none.")
    ] = "5.5.0",
    sends: Annotated[int, typer.Option(min=100, help="Sends per throughput row.")] = 30_000,
    seconds: Annotated[float, typer.Option(min=0.1, help="Duration of a latency row.")] = 5.0,
    memory_sends: Annotated[
        int, typer.Option(min=1, help="Sends before the memory is measured.")
    ] = 1_000_000,
    recovery_mib: Annotated[int, typer.Option(min=1, help="Size of the recovered store.")] = 4096,
    warm_seconds: Annotated[float, typer.Option(min=0.0, help="Warm-up load on each new broker.")] = 5.0,
    rounds: Annotated[
        int, typer.Option(min=1, help="Rounds; memory and recovery are measured in the first one.")
    ] = 3,
    profile: Annotated[
        bool,
        typer.Option(
            "--cpu-profile/--no-cpu-profile", help="Profile our broker on the rows in which it is slower."
        ),
    ] = True,
    part: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Measure only this part; may be repeated.")
    ] = None,
    directory: _StoreFolder = Path("build/bench"),
    json_file: _JsonFile = None,
) -> None:
    """Compare our broker with Apache's: throughput, latency, features, copies, memory, start-up, recovery.

    The parts are sends, sends-synced, latencies (which needs sends), topics, features, tls, slave, group,
    memory and recovery.
    Maven downloads Apache's release once. On an idle machine with 2 cores, a run with the defaults takes
    about 25 minutes.

    Example: mqproof bench broker --rounds 1 --memory-sends 100000 --recovery-mib 512
    """
    from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError
    from mqproof.conformance.bench.broker_profile import profiles
    from mqproof.conformance.bench.feature_rows import FEATURES
    from mqproof.report.console import stages

    parts = _chosen(broker_bench.PARTS | FEATURES, part or [])
    amount = broker_bench.Amount(sends, seconds, warm_seconds, memory_sends, recovery_mib)
    profiled = ""
    try:
        sides = _sides(apache)
        directory.mkdir(parents=True, exist_ok=True)
        with stages("bench broker") as on_stage:
            result = broker_bench.measure(sides, parts, amount, rounds, directory.resolve(), on_stage)
            if profile:
                profiled = profiles(result, amount, directory.resolve(), on_stage)
    except (*broker_bench.FAILURES, ApacheMissingError) as error:
        stop(f"{error}", Exit.TOOL)
    print(broker_bench.table(result))
    if profiled:
        print(f"\n{profiled}")
    if json_file is not None:
        measurements.write(json_file, result)
    if result["missing"]:
        raise typer.Exit(Exit.TOOL)


def _sides(apache: str) -> dict[str, broker_bench.Side]:
    """Return our side and that of an Apache release, unless it is `-`. Raises ApacheMissingError."""
    from mqproof.conformance.adapters.apache.artifacts import jars
    from mqproof.conformance.bench.copied_brokers import apache_copies, our_copies

    sides = {"mqproof": broker_bench.Side(broker_bench.ours, our_copies)}
    if apache != "-":
        jars(apache)
        sides[f"Apache {apache}"] = broker_bench.Side(broker_bench.apache(apache), apache_copies(apache))
    return sides


def _chosen(parts: dict[str, broker_bench.Part], names: list[str]) -> dict[str, broker_bench.Part]:
    if unknown := sorted(set(names) - set(parts)):
        stop(f"--part {unknown[0]}: unknown part, expected one of {', '.join(parts)}", Exit.USAGE)
    return {name: part for name, part in parts.items() if not names or name in names}


@bench.command()
def client(
    apache: Annotated[
        str, typer.Option(metavar="RELEASE", help="Apache client to compare with; - for none.")
    ] = "5.5.0",
    cpp: Annotated[bool, typer.Option("--cpp", help="Compare with the package rocketmq (C++) too.")] = False,
    sends: Annotated[int, typer.Option(min=100, help="Concurrent sends per row.")] = 50_000,
    consumed: Annotated[int, typer.Option(min=100, help="Messages that a push consumer reads.")] = 1_000_000,
    seconds: Annotated[float, typer.Option(min=0.1, help="Duration of a latency row.")] = 10.0,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds per side.")] = 3,
    directory: _StoreFolder = Path("build/bench"),
    json_file: _JsonFile = None,
) -> None:
    """Compare our client with Apache's Java and C++ clients: sends, push consumption, latency.

    Example: mqproof bench client --rounds 1 --consumed 100000 --cpp
    """
    from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError
    from mqproof.conformance.adapters.clients.driver_client import DriverError
    from mqproof.conformance.bench import compared_clients as clients
    from mqproof.conformance.bench.load import LoadError
    from mqproof.report.console import stages

    amount = clients.Amount(sends, max(1, sends // 5), consumed, seconds)
    sides = {"mqproof": clients.ours()}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if apache != "-":
            sides[f"Apache {apache}"] = clients.apache(apache, directory.resolve())
        if cpp:
            sides["C++"] = clients.cpp(directory.resolve())
        with stages("bench client") as on_stage:
            result = clients.measure(sides, amount, rounds, directory.resolve(), on_stage)
    except (BenchError, ApacheMissingError, DriverError, LoadError, OSError) as error:
        stop(f"{error}", Exit.TOOL)
    print(clients.table(result))
    if json_file is not None:
        measurements.write(json_file, result)


@bench.command()
def replication(
    sends: Annotated[int, typer.Option(min=100, help="Sends per throughput row.")] = 10_000,
    seconds: Annotated[float, typer.Option(min=0.1, help="Duration of a latency row.")] = 5.0,
    kills: Annotated[int, typer.Option(min=1, help="Number of times the master of a group is killed.")] = 100,
    copied_mib: Annotated[int, typer.Option(min=1, help="Amount of data that an empty slave copies.")] = 256,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of the throughput rows.")] = 3,
    directory: _StoreFolder = Path("build/bench"),
    json_file: _JsonFile = None,
) -> None:
    """Measure the cost of SYNC_MASTER and of a group, and the duration of a change of masters.

    Each kill takes about 8 seconds.

    Example: mqproof bench replication --rounds 1 --kills 5
    """
    from mqproof.conformance.bench import replicated_brokers
    from mqproof.conformance.bench.load import LoadError
    from mqproof.conformance.hosts.processes import ClusterError
    from mqproof.report.console import stages

    amount = replicated_brokers.Amount(sends, seconds, kills, copied_mib)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with stages("bench replication") as on_stage:
            result = replicated_brokers.measure(amount, rounds, directory.resolve(), on_stage)
    except (ClusterError, LoadError, OSError) as error:
        stop(f"{error}", Exit.TOOL)
    print(replicated_brokers.table(result))
    if json_file is not None:
        measurements.write(json_file, result)


@bench.command()
def chaos(
    rate: Annotated[int, typer.Option(min=100, help="Messages per second.")] = 10_000,
    seconds: Annotated[float, typer.Option(min=0.1, help="Duration of a round at that rate.")] = 5.0,
    size: Annotated[int, typer.Option(min=8, help="Bytes per message body.")] = 1024,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds per side.")] = 3,
    directory: _StoreFolder = Path("build/bench"),
    json_file: _JsonFile = None,
) -> None:
    """Compare a load on our broker directly, through the chaos proxy, and through one that records.

    Example: mqproof bench chaos --rounds 1 --seconds 2
    """
    from mqproof.conformance.bench import chaos_overhead
    from mqproof.conformance.bench.load import LoadError
    from mqproof.report.console import stages

    try:
        directory.mkdir(parents=True, exist_ok=True)
        with stages("bench chaos") as on_stage:
            result = chaos_overhead.measure(rate, seconds, size, rounds, directory.resolve(), on_stage)
    except (BenchError, LoadError, OSError) as error:
        stop(f"{error}", Exit.TOOL)
    print(chaos_overhead.table(result))
    if json_file is not None:
        measurements.write(json_file, result)


@bench.command("testing")
def embedded(
    tests: Annotated[int, typer.Option(min=0, max=100_000, help="Tests in pytest; 0 runs none.")] = 1000,
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Rounds of each other figure.")] = 9,
    json_file: _JsonFile = None,
) -> None:
    """Measure brokers for tests: start, memory, virtual time, and isolated tests in pytest.

    Example: mqproof bench testing --tests 100 --rounds 3
    """
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        command = [sys.executable, "-m", "mqproof.impl.embedded.testing_speed", "--json", str(file)]
        command += ["--tests", str(tests), "--rounds", str(rounds)]
        # In a process of its own, so that the memory is that of the brokers.
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            reason = ran.stderr.strip().splitlines()[-1:] or ["no reason given"]
            stop(f"the measurement failed: {reason[0]}", Exit.TOOL)
        found = json.loads(file.read_text())
    result = described("bench testing", [(name, {"mqproof": values}) for name, values in found.items()])
    result["load_average_before"] = load_before
    for name, values in found.items():
        print(f"{name:55} {statistics.median(values):10.1f}")
    if json_file is not None:
        measurements.write(json_file, result)


@bench.command()
def history(
    operations: Annotated[int, typer.Option(min=100, help="Operations in the history.")] = 1_000_000,
    directory: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the temporary history.")] = Path(
        "build/bench"
    ),
    columns: Annotated[bool, typer.Option("--columns", help="Check a history in columns.")] = False,
    json_file: _JsonFile = None,
) -> None:
    """Run all anomaly rules on a generated history without anomalies.

    Example: mqproof bench history --operations 100000
    """
    from mqproof.conformance.bench import history_checks as history_bench

    directory.mkdir(parents=True, exist_ok=True)
    measure = history_bench.measure_columns if columns else history_bench.measure
    result = measure(operations, directory)
    print(history_bench.table(result))
    if json_file is not None:
        measurements.write(json_file, result)
    if result["rules_violated"]:
        stop(f"the clean history violates {result['rules_violated']}", Exit.VIOLATED)


@bench.command()
def compare(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Result of an earlier run (--json).")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Result of a later run.")],
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the comparison as JSON.")
    ] = None,
) -> None:
    """Compare two results of one benchmark: is the later run slower than the noise explains?

    The noise of a row is the range of its rounds in both runs. Where a result has another system beside ours,
    the ratios to it are compared, so that the results may be of two machines.

    Exit codes: 0 no row is worse; 1 a row is worse; 2 bad input; 3 no row can be judged.

    Example: mqproof bench compare before.json after.json
    """
    try:
        earlier, later = measurements.read(old), measurements.read(new)
        changes = measurements.compare(earlier, later)
    except MeasurementsError as error:
        stop(f"{error}", Exit.USAGE)
    print(measurements.changes_table(changes))
    results = measurements.results(later.benchmark, changes)
    if json_file is not None:
        write_report(Report(f"mqproof bench compare {old} {new}", results), json_file)
    raise typer.Exit(exit_code(results))


@bench.command()
def page(
    files: Annotated[list[Path], typer.Argument(metavar="RESULT...", help="Results of benchmarks (--json).")],
    report: Annotated[Path, typer.Option("--report", metavar="FILE", help="The .md file to write.")],
) -> None:
    """Write a page of benchmark results: medians, ranges, ratios, machines, versions and dates.

    Example: mqproof bench page send.json broker.json --report speed.md
    """
    if report.suffix != ".md":
        stop(f"--report {report}: expected a name that ends in .md", Exit.USAGE)
    try:
        tables = [measurements.table(measurements.read(file)) for file in files]
        write_text(report, markdown.of_tables("Measured speed", _PAGE, tables))
    except (MeasurementsError, OSError) as error:
        stop(f"{error}", Exit.USAGE)


def measure(load: Load, rounds: int, directory: Path) -> dict[str, Any]:
    """Return the rates of every round and mode, with the medians.

    Raises BenchError if a server did not start, or a send was not SEND_OK.
    """
    rates: dict[str, list[float]] = {mode: [] for mode in _MODES}
    fdatasync: list[float] = []
    for _ in range(rounds):
        fdatasync.append(fdatasync_rate(directory, load.size))
        for mode in _MODES:
            with tempfile.TemporaryDirectory(dir=directory) as store:
                rates[mode].append(send_rate(mode, load, Path(store)))
    by_side = {**rates, _DISK: fdatasync}
    return {
        **described("bench send", [("messages/s", by_side)], baseline=_DISK),
        "load": {"count": load.count, "size": load.size, "outstanding": load.outstanding},
        "sends_per_second": {mode: round(statistics.median(rates[mode]), 1) for mode in _MODES},
        "fdatasync_per_second": round(statistics.median(fdatasync), 1),
        "rounds": {**rates, "fdatasync": fdatasync},
    }


def send_rate(mode: str, load: Load, store: Path) -> float:
    """Return the sends per second of a new broker, measured after the topic exists and the code is warm."""
    with broker_bench.ours(store, mode) as broker:
        _send(broker.name_server, Load(min(load.count, 500), load.size, load.outstanding))
        return float(_send(broker.name_server, load)["sends_per_second"])


def fdatasync_rate(directory: Path, size: int, seconds: float = 1.0) -> float:
    """Return how often per second the disk writes `size` bytes durably, one write after the other."""
    with tempfile.TemporaryFile(dir=directory) as file:
        descriptor, data = file.fileno(), bytes(size)
        os.ftruncate(descriptor, 64 << 20)
        began = time.perf_counter()
        count = 0
        while time.perf_counter() - began < seconds:
            os.pwrite(descriptor, data, count * size % (64 << 20))
            os.fdatasync(descriptor)
            count += 1
        return count / (time.perf_counter() - began)


def table(result: dict[str, Any]) -> str:
    """Return the result as a table for people."""
    load, rates, raw = result["load"], result["sends_per_second"], result["fdatasync_per_second"]
    spread = {name: f"{min(all_):.0f} to {max(all_):.0f}" for name, all_ in result["rounds"].items()}
    lines = [
        result["machine"],
        f"{load['count']} sends of {load['size']} bytes, {load['outstanding']} outstanding, one connection",
        "",
        f"{'':24}{'per second':>12}  {'ratio':>7}  {'rounds':>16}",
    ]
    rows = [("ASYNC_FLUSH", "ASYNC_FLUSH"), ("SYNC_FLUSH", "SYNC_FLUSH")]
    for label, mode in rows:
        ratio = rates[mode] / rates["ASYNC_FLUSH"]
        lines.append(f"{label:24}{rates[mode]:>12.0f}  {ratio:>7.2f}  {spread[mode]:>16}")
    ratio = raw / rates["ASYNC_FLUSH"]
    lines.append(f"{_DISK:24}{raw:>12.0f}  {ratio:>7.2f}  {spread['fdatasync']:>16}")
    lines.append("")
    lines.append(
        f"SYNC_FLUSH makes {rates['SYNC_FLUSH'] / raw:.1f} sends durable in the time of one fdatasync."
    )
    return "\n".join(lines)


def _send(namesrv: str, load: Load) -> dict[str, Any]:
    options = ("--size", load.size, "--count", load.count, "--outstanding", load.outstanding)
    command = (*_MQPROOF, "send", "--namesrv", namesrv, "--topic", "bench", "--json", "-", *map(str, options))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"mqproof send: {done.stderr.strip() or done.stdout.strip()}")
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary
