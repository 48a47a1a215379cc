"""The suite wire of `mqproof conform`."""

import sys
import time
from typing import Final

from conformance.wire.catalogue import choose
from conformance.wire.model import Since
from conformance.wire.scene import SceneError
from conformance.wire.servers import ServersError, UnknownServersError, servers
from conformance.wire.suite import Run, examine, listed, report, results, shown
from conformance.wire.talk import UnreachableError
from report import terminal
from report.console import stages, stop
from report.model import Exit, Report

_PROGRESS_CASES: Final = 100


def wire(target: str, globs: list[str], since: str, *, strict: bool, dryrun: bool) -> Report:
    """Run the cases and show them. Ends the command on wrong use, and where there are no servers."""
    if since not in tuple(Since):
        stop(f"--since {since}: expected {' or '.join(Since)}", Exit.USAGE)
    run = Run(target, Since(since), strict)
    cases = choose(globs, run.since)
    if not cases:
        stop(f"--id {' '.join(globs)}: no case has such an id since {since}", Exit.USAGE)
    if dryrun:
        sys.stdout.write(listed(cases))
        raise SystemExit(Exit.HELD)
    began = time.perf_counter()
    with stages(f"conform {target} wire") as told:

        def progress(done: int, all_of_them: int) -> None:
            if done % _PROGRESS_CASES == 0:
                told(f"{done} of {all_of_them} cases")

        try:
            with servers(target) as addresses:
                judged = examine(addresses, cases, progress)
        except UnknownServersError as error:
            stop(f"--target {error}", Exit.USAGE)
        except (ServersError, UnreachableError, SceneError) as error:
            stop(f"{target}: {error}", Exit.TOOL)
    whole = report(results(judged, run), judged, run, time.perf_counter() - began)
    terminal.show(shown(whole))
    return whole
