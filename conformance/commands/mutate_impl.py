"""The command `mqproof mutate-impl`."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from mqproof.report.console import stages, stop, terminable
from mqproof.report.model import Exit, exit_code
from mqproof.report.option_groups import with_groups

if TYPE_CHECKING:
    from mqproof.conformance.mutation.campaign import Campaign, Judged

app = typer.Typer(add_completion=False, no_args_is_help=False, pretty_exceptions_enable=False)

_FOLDER: Final = Path("build/mutate-impl")


@app.callback()
def _root() -> None:
    """Systematic mutation of the implementation."""


@dataclass(frozen=True)
class SampleOptions:
    """Which mutants are judged."""

    parts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PART]...", help="Folders of impl/, e.g. store. Default: all with a suite."),
    ] = None
    sample: Annotated[int, typer.Option(min=1, help="Number of mutants to judge.")] = 100
    seed: Annotated[int, typer.Option(help="Seed of the sample, and first seed of the suites.")] = 0
    patches: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", exists=True, file_okay=False, help="Judge the .patch files of this folder instead."
        ),
    ] = None


@dataclass(frozen=True)
class JudgeOptions:
    """How a mutant is judged."""

    suite: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Judge by this suite only; may be repeated. Default: all suites."),
    ] = None
    examples: Annotated[int, typer.Option(min=1, help="Number of examples for each suite.")] = 100
    cpu_seconds: Annotated[int, typer.Option(min=5, help="Processor time for each mutant.")] = 60
    workers: Annotated[int, typer.Option(min=1, help="Number of mutants judged at the same time.")] = 2
    minutes: Annotated[
        float | None, typer.Option(min=0.1, help="Report what is judged after this time. Default: no limit.")
    ] = None
    unit_tests: Annotated[
        bool, typer.Option("--unit-tests", help="Let the unit tests judge what no suite detects.")
    ] = False
    folder: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for verdicts; a stopped campaign continues from it.")
    ] = _FOLDER


@app.command("mutate-impl")
@with_groups
def mutate_impl(
    chosen: SampleOptions,
    judge: JudgeOptions,
    goal: Annotated[int, typer.Option(min=0, max=100, help="Percentage that must be detected.")] = 90,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON to this file.")
    ] = None,
    report_file: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write the result to this .html or .md file."),
    ] = None,
) -> None:
    """Change the code of impl/ in small ways; report which changes no suite detects.

    Each mutant runs in a process of its own, under the suites of `conform` that execute its line. The first
    suite that reports a violation detects it. It needs a checkout: an installed package lacks it.

    --unit-tests runs tests/impl and tests/fuzz on the mutants that no suite detects: the files of the module,
    those that import it, and those of its folder, for at most 60 s of processor time.

    --patches judges defects written by hand: each .patch file is a change of impl/, as `git diff` writes it.

    Exit codes: 0 each part of impl/ reaches the goal; 1 one does not; 2 wrong use, or a patch that does not
    apply; 4 a suite does not hold on the unchanged code.

    Examples: mqproof mutate-impl store --sample 50; mqproof mutate-impl --sample 1500 --seed 7
    """
    from mqproof.spec.checkout import expect_checkout

    expect_checkout("mutate-impl")
    from mqproof.conformance.mutation import score
    from mqproof.conformance.mutation.fork_server import ServerError
    from mqproof.conformance.mutation.patches import PatchError
    from mqproof.conformance.mutation.reach import ReachError
    from mqproof.conformance.mutation.survivors import SurvivorsError
    from mqproof.report import terminal
    from mqproof.report.files import expect_writable, write_files

    options = _campaign(chosen, judge)
    expect_writable(json=json_file, report=report_file)
    try:
        judged = _judged(options)
        found = score.report(judged, _facts(options, len(judged)), goal, options.patches)
    except PatchError as error:
        stop(str(error), Exit.USAGE)
    except (ReachError, ServerError, SurvivorsError) as error:
        stop(str(error), Exit.TOOL)
    except OSError as error:
        stop(f"{error.filename}: {error.strerror}", Exit.USAGE)
    terminal.show(found)
    write_files(found, json=json_file, page=report_file)
    raise typer.Exit(exit_code(found.results))


def _campaign(chosen: SampleOptions, judge: JudgeOptions) -> "Campaign":
    """Return the options of the campaign. Ends the command on an unknown part or suite."""
    from mqproof.conformance.engine.coverage_feedback import PARTS
    from mqproof.conformance.mutation.campaign import ALL_SUITES, Campaign

    if unknown := [part for part in chosen.parts or () if part not in PARTS]:
        stop(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}", Exit.USAGE)
    if unknown := [name for name in judge.suite or () if name not in ALL_SUITES]:
        stop(f"--suite {unknown[0]}: expected {', '.join(ALL_SUITES)}", Exit.USAGE)
    return Campaign(
        judge.folder,
        parts=tuple(chosen.parts or PARTS),
        suites=tuple(judge.suite or ALL_SUITES),
        size=chosen.sample,
        seed=chosen.seed,
        examples=judge.examples,
        cpu_s=judge.cpu_seconds,
        workers=judge.workers,
        patches=chosen.patches,
        minutes=judge.minutes or math.inf,
        unit_tests=judge.unit_tests,
    )


def _judged(options: "Campaign") -> "tuple[Judged, ...]":
    from mqproof.conformance.mutation import campaign

    with terminable(), stages("mutate-impl") as on_stage:
        on_stage(f"measuring the lines that {len(options.suites)} suites execute")

        def report(judged: "Judged", done: int, total: int) -> None:
            by = f" by {judged.verdict.suite}" if judged.verdict.suite else ""
            on_stage(f"{done}/{total} {judged.mutant.id} {judged.verdict.outcome}{by}")

        return campaign.run(options, report)


def _facts(options: "Campaign", judged: int) -> dict[str, str]:
    if options.patches:
        chosen = {"patches": str(judged)}
    else:
        is_whole = judged == options.size
        chosen = {"sample": str(judged) if is_whole else f"the first {judged} of {options.size}"}
    return {
        **chosen,
        "seed": str(options.seed),
        "examples": str(options.examples),
        "processor seconds a mutant": str(options.cpu_s),
    }
