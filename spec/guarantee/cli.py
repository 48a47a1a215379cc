"""The command `mqproof matrix`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mqproof.report.console import stages, stop
from mqproof.report.model import Exit
from mqproof.spec.guarantee import options

if TYPE_CHECKING:
    from mqproof.spec.guarantee.claims import Claims, Compared
    from mqproof.spec.guarantee.matrix import Cell, Matrix, Verdicts
    from mqproof.spec.guarantee.view import View

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

_WIDE: Final = 120
_PICTURES: Final = "counterexamples"


@app.callback()
def _root() -> None:
    """The guarantee matrix."""


@app.command()
def matrix(
    on: Annotated[
        str, typer.Option(help="model: TLC decides; impl: brokers run every cell, see --on impl --help.")
    ] = "model",
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write matrix.html, matrix.md and every counterexample as SVG."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON.")
    ] = None,
    fault: options.Fault = None,
    flush: options.Flush = None,
    replication: options.Replication = None,
    producer: options.Producer = None,
    record: Annotated[
        bool, typer.Option("--record", help="Record the verdicts as the expected ones, and in docs/.")
    ] = False,
) -> None:
    """Decide with TLC what happens to a message under each configuration and fault, beside the book's claims.

    Exit codes: 0 the verdicts are those recorded in spec/guarantee/matrix.toml; 1 one is not; 2 wrong use;
    4 Java or TLC is missing or failed.

    SYNC_MASTER waits for a slave, as 4.9 does. SYNC_MASTER_5X is SYNC_MASTER in 5.x with its defaults.

    Example: mqproof matrix --flush SYNC_FLUSH --producer sync --out build/matrix
    """
    from rich.console import Console

    from mqproof.spec.guarantee import document, recorded, show
    from mqproof.spec.guarantee.view import build

    if on != "model":
        stop(f"--on {on}: expected model or impl", Exit.USAGE)
    chosen = options.chosen(
        record=record, flush=flush, replication=replication, producer=producer, fault=fault
    )
    rows = {name: value for name, value in chosen.items() if name != "fault"}
    decided, known, compared, expected = _decide(rows, record=record)
    pictures = _pictures(decided, fault) if out is not None else {}
    view = build(decided.verdicts, known, compared, pictures, fault=fault, states=decided.states)
    # Piped output has no width of its own; this one keeps each row on one line.
    width = None if sys.stdout.isatty() else _WIDE
    show.terminal(view, Console(width=width, highlight=False))
    if record:
        expected = dict(decided.verdicts)
        document.record(decided)
    _write(out, json_file, decided, pictures, view, expected)
    changed = list(recorded.changed(decided.verdicts, expected))
    for line in changed:
        print(f"✗ {line}; replay: mqproof matrix")
    cells = f"{len(decided.verdicts)} cells, {decided.states:,} states, {decided.seconds:.1f} s"
    print(
        f"✗ {len(changed)} verdicts changed: {cells}" if changed else f"✓ every verdict as recorded: {cells}"
    )
    raise typer.Exit(Exit.VIOLATED if changed else Exit.HELD)


def _decide(rows: dict[str, str], *, record: bool) -> "tuple[Matrix, Claims, tuple[Compared, ...], Verdicts]":
    """Return the decided cells, the book's claims, both compared, and the recorded verdicts."""
    from mqproof.spec.guarantee import claims, recorded
    from mqproof.spec.guarantee.matrix import decide, decide_damage, joined
    from mqproof.spec.tlc.errors import TlcError

    try:
        known = claims.load()
        expected = {} if record else recorded.load()
        with stages("matrix") as on_stage:
            on_stage("TLC decides every cell")
            decided = joined(decide(rows), decide_damage(rows))
        compared = claims.compare(decided.verdicts, known)
    except (claims.ClaimsError, recorded.RecordedError) as error:
        stop(str(error), Exit.USAGE)
    except TlcError as error:
        stop(str(error), Exit.TOOL)
    if not rows and (stale := claims.stale(compared, known)):
        stop(f"{claims.CLAIMS_FILE.name}: {stale[0]} explains a difference that does not exist", Exit.USAGE)
    return decided, known, compared, expected


def _write(
    out: Path | None,
    json_file: Path | None,
    decided: "Matrix",
    pictures: "dict[Cell, str]",
    view: "View",
    expected: "Verdicts",
) -> None:
    from mqproof.report.write import write_text
    from mqproof.spec.guarantee import show

    try:
        if out is not None:
            _write_pictures(out, decided, pictures)
            write_text(out / "matrix.html", show.html(view))
            write_text(out / "matrix.md", "# The guarantee matrix\n\n" + show.markdown(view))
            print(f"{len(pictures)} counterexamples drawn; see {out / 'matrix.html'}")
        if json_file is not None:
            write_text(json_file, show.as_json(decided, view, expected))
    except OSError as error:
        stop(f"{'--out' if out is not None else '--json'}: {error}", Exit.USAGE)


def _pictures(decided: "Matrix", fault: str | None) -> "dict[Cell, str]":
    """Return the file of each shown counterexample's drawing, relative to the output folder."""
    from mqproof.spec.guarantee.picture import file_name

    shown = (cell for cell in decided.counterexamples if fault is None or fault in cell.faults)
    return {cell: f"{_PICTURES}/{file_name(cell)}" for cell in shown}


def _write_pictures(out: Path, decided: "Matrix", pictures: "dict[Cell, str]") -> None:
    from mqproof.spec.guarantee.picture import picture

    (out / _PICTURES).mkdir(parents=True, exist_ok=True)
    for cell, name in pictures.items():
        # There are hundreds, and all can be drawn again, so they need no fsync each.
        svg = picture(cell, decided.verdicts[cell], decided.counterexamples[cell])
        (out / name).write_text(svg, encoding="utf-8")
