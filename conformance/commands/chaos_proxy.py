"""`mqproof chaos`: a proxy that injects faults which the specification permits."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mqproof.report.console import stop
from mqproof.report.model import Exit, exit_code

if TYPE_CHECKING:  # imported late: --help loads neither the codec nor the rules
    from mqproof.conformance.faults.chaos_run import ChaosRun
    from mqproof.report.model import Report

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

_Upstream = Annotated[str, typer.Option(metavar="HOST:PORT", help="The name server of the cluster.")]
_Host = Annotated[str, typer.Option(help="Address to listen on.")]
_Port = Annotated[
    int,
    typer.Option(min=0, max=65535, help="Port for clients, as of a name server; 0 selects any free port."),
]
_BrokerPort = Annotated[
    int,
    typer.Option(
        min=0, max=65535, help="Port in front of the first broker; others follow. 0 selects free ports."
    ),
]
_AdvertisedHost = Annotated[
    str, typer.Option(metavar="HOST", help="The host in the routes of clients; by default --host.")
]
_Plan = Annotated[Path | None, typer.Option(metavar="FILE", help="A plan of faults, in TOML.")]
_Fault = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[=PROBABILITY]", help="Inject this fault; may be repeated. Default: all lawful ones."
    ),
]
_Seed = Annotated[int | None, typer.Option(min=0, help="Seed; the same requests meet the same faults.")]
_Lawful = Annotated[
    bool, typer.Option("--lawful", help="Allow only lawful faults, and judge what the clients saw.")
]
_CalmAfter = Annotated[
    float | None, typer.Option(min=0.0, metavar="SECONDS", help="Inject no faults after this time.")
]
_Capture = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Keep the frames that the clients sent and received.")
]
_History = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write what the clients saw as a history (JSON Lines).")
]
_Json = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON to this file.")
]
_Report = Annotated[
    Path | None,
    typer.Option(
        "--report", metavar="FILE", help="Write the result to this .html, .xml, .sarif or .md file."
    ),
]
_Tls = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A tls.properties file, for clients and for the cluster.")
]
_List = Annotated[bool, typer.Option("--list", help="List the faults, and what permits each.")]


@app.callback()
def _root() -> None:
    """Chaos between an application and its cluster."""


@app.command()
def chaos(
    upstream: _Upstream = "",
    host: _Host = "127.0.0.1",
    port: _Port = 9877,
    broker_port: _BrokerPort = 0,
    advertised_host: _AdvertisedHost = "",
    plan: _Plan = None,
    fault: _Fault = None,
    seed: _Seed = None,
    lawful: _Lawful = False,
    calm_after: _CalmAfter = None,
    capture: _Capture = None,
    history: _History = None,
    json_file: _Json = None,
    report_file: _Report = None,
    tls: _Tls = None,
    show_list: _List = False,
) -> None:
    """Stand between clients and a cluster until SIGTERM, and inject faults that the specification permits.

    Clients use the proxy as their name server. With --lawful, the rules of check-history judge at the end
    what the clients saw. An application that fails then is wrong.

    Exit codes: 0 held, or not judged; 1 the cluster broke the specification; 2 wrong use; 3 inconclusive.

    \b
    Examples:
      mqproof chaos --upstream 127.0.0.1:9876 --seed 7 --lawful
      mqproof chaos --upstream 127.0.0.1:9876 --fault send_answer_lost=0.2
      mqproof chaos --list
    """
    from mqproof.conformance.faults.chaos_run import ChaosRun, ChaosRunError, config_of, plan_of
    from mqproof.report import terminal
    from mqproof.report.files import expect_writable, write_files

    if show_list:
        print(_faults())
        raise typer.Exit
    if not upstream:
        stop("--upstream HOST:PORT expected", Exit.USAGE)
    expect_writable(capture=capture, history=history, json=json_file, report=report_file)
    try:
        config = config_of(upstream, host, port, broker_port, advertised_host)
        chosen = plan_of(plan, fault or [], seed, lawful=lawful)
    except ChaosRunError as error:
        stop(str(error), Exit.USAGE)
    report = _run(ChaosRun(config, chosen, capture, calm_after, tls), history)
    terminal.show(report)
    write_files(report, json=json_file, page=report_file)
    raise typer.Exit(exit_code(report.results) if report.results else Exit.HELD)


def _run(chaos_run: "ChaosRun", history: Path | None) -> "Report":
    """Run the proxy, write the history, and return the verdicts if the run is judged."""
    from mqproof.conformance.faults.chaos_run import ChaosRunError, serve_and_judge

    try:
        return serve_and_judge(chaos_run, history)
    except ChaosRunError as error:
        stop(str(error), Exit.USAGE)


def _faults() -> str:
    """Return the table of faults as text for a terminal."""
    from mqproof.conformance.faults.chaos_run import fault_rows

    lines = []
    for row in fault_rows():
        tagged = f"permitted by {row.permitted_by}" if row.permitted_by else f"UNLAWFUL, breaks {row.breaks}"
        lines.append(f"{row.name} ({tagged})")
        lines += textwrap.wrap(f"{row.point}: {row.effect}", 78, initial_indent="  ", subsequent_indent="  ")
    return "\n".join(lines)
