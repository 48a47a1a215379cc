"""Judges the simulations by their findings.

Seeds are run with an injected defect until its invariant reports it. `mqproof mutants --layer simulation`
runs them. A result is HELD if a seed killed the mutant, and VIOLATED if it survived. `python -m
mqproof.fuzz.simulation` records the seeds and writes the table of docs/explanation/simulation.md.
"""

import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from mqproof.conformance.mutants.replacement import injected
from mqproof.fuzz.cluster import program as cluster_program
from mqproof.fuzz.defects import cluster, deferred, dledger, groups, hostile, routes
from mqproof.fuzz.defects.defect import Mutant
from mqproof.fuzz.deferred import program as deferred_program
from mqproof.fuzz.groups import program as groups_program
from mqproof.fuzz.hostile import program as hostile_program
from mqproof.fuzz.raft import program as raft_program
from mqproof.fuzz.routes import program as routes_program
from mqproof.fuzz.target import Finding
from mqproof.report.model import Result, Verdict, Witness
from mqproof.report.write import write_text
from mqproof.spec import catalogue
from mqproof.spec.checkout import expect_checkout

LAYER: Final = "simulation"
SEEDS_MAX: Final = 2000

MUTANTS: Final = {
    mutant.name: mutant
    for mutant in (
        *(*dledger.MUTANTS, *dledger.SELDOM, *cluster.MUTANTS),
        *(*deferred.MUTANTS, *groups.MUTANTS, *routes.MUTANTS, *hostile.MUTANTS),
    )
}
"""The mutants by name."""

RECORDED_FILE: Final = Path(__file__).with_name("simulation.toml")
DOCUMENT: Final = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "simulation.md"
MARK: Final = "<!-- What follows is written by `python -m mqproof.fuzz.simulation`. -->\n"
_HEAD: Final = "# The first seed that kills each mutant, written by `python -m mqproof.fuzz.simulation`.\n"


_GROUP_PROGRAMS: Final = (
    raft_program.random_program,
    raft_program.toppling_program,
    raft_program.rejoining_program,
    raft_program.late_vote_program,
    raft_program.partial_cut_program,
)


def _group_program(seed: int) -> bytes:
    """Return the program of a seed: every fifth one is random, the others reveal rare defects."""
    make = _GROUP_PROGRAMS[seed % len(_GROUP_PROGRAMS)]
    return make(seed // len(_GROUP_PROGRAMS))


def _play_group(seed: int) -> None:
    raft_program.Run(_group_program(seed), Counter()).run()


def _play_cluster(seed: int) -> None:
    cluster_program.Run(cluster_program.random_program(seed), Counter()).run()


def _play_deferred(seed: int) -> None:
    deferred_program.Run(deferred_program.random_program(seed), Counter()).run()


def _play_groups(seed: int) -> None:
    groups_program.Run(groups_program.random_program(seed), Counter()).run()


def _play_routes(seed: int) -> None:
    routes_program.Run(routes_program.random_program(seed), Counter()).run()


def _play_hostile(seed: int) -> None:
    hostile_program.Run(hostile_program.random_program(seed), Counter()).run()


def _is_elected(seed: int) -> bool:
    return cluster_program.is_elected(cluster_program.random_program(seed))


_PLAY: Final[dict[str, Callable[[int], None]]] = {
    "dledger-group": _play_group,
    "cluster": _play_cluster,
    "deferred-messages": _play_deferred,
    "consumer-groups": _play_groups,
    "routes-and-replies": _play_routes,
    "hostile-peers": _play_hostile,
}


def names() -> tuple[str, ...]:
    """Return the names of the mutants, in order."""
    return tuple(MUTANTS)


def run(chosen: Sequence[str] = (), *, first: int = 0, seeds_max: int = SEEDS_MAX) -> Iterator[Result]:
    """Judge each mutant, or each chosen one, in turn."""
    for name in chosen or MUTANTS:
        yield judge(MUTANTS[name], first=first, seeds_max=seeds_max)


def judge(mutant: Mutant, *, first: int = 0, seeds_max: int = SEEDS_MAX) -> Result:
    """Run seeds with the defect in place, from `first` on, until its invariant reports it."""
    begin = time.monotonic()
    seed, message = first, ""
    with injected(mutant):
        for seed in range(first, first + seeds_max):
            if message := _noticed(mutant, seed):
                break
    how = f"killed by {mutant.breaks} at seed {seed}" if message else f"survives {mutant.breaks}"
    return Result(
        id=next(each.id for each in catalogue.catalogue().values() if each.name == mutant.breaks),
        name=mutant.name,
        layer=LAYER,
        verdict=Verdict.HELD if message else Verdict.VIOLATED,
        counts={"seeds": seed - first + 1, "seed": seed},
        witnesses=(Witness(message or f"not found: {mutant.defect}"),),
        detail=f"{how}: {mutant.defect}",
        replay=f"mqproof mutants --layer {LAYER} --only {mutant.name}",
        seconds=time.monotonic() - begin,
    )


def recorded() -> dict[str, int]:
    """Return the first seed that kills each mutant, by the mutant's name."""
    return {str(name): int(seed) for name, seed in tomllib.loads(RECORDED_FILE.read_text()).items()}


def table(seeds: dict[str, int]) -> str:
    """Return the table of mutants as Markdown."""
    lines = ["| mutant | what is wrong | simulation | killed by | at seed |", "|---|---|---|---|---|"]
    for name, mutant in MUTANTS.items():
        seed = seeds.get(name, "not yet")
        lines.append(f"| {name} | {mutant.defect} | {mutant.target} | {mutant.breaks} | {seed} |")
    return "\n".join(lines) + "\n"


def refreshed(text: str, seeds: dict[str, int]) -> str:
    """Return the document's text with this table after the mark."""
    return f"{text.partition(MARK)[0]}{MARK}\n{table(seeds)}"


def _noticed(mutant: Mutant, seed: int) -> str:
    """Return the finding's message if this seed violates the mutant's invariant, otherwise an empty string.

    Any other error is ignored, because a defect may cause any error.
    """
    if (
        mutant.target == "cluster"
        and mutant.where.startswith("mqproof.impl.dledger.")
        and not _is_elected(seed)
    ):
        return ""  # the defective code is not used
    try:
        _PLAY[mutant.target](seed)
    except Finding as finding:
        return str(finding) if finding.invariant == mutant.breaks else ""
    except Exception:
        return ""
    return ""


def main(chosen: Sequence[str]) -> None:
    """Record the first seed of each mutant, or of each chosen one, and write the table.

    The results are saved after each mutant, so that an interrupted run keeps them.
    """
    expect_checkout("mqproof.fuzz.simulation")
    seeds = dict(recorded()) if RECORDED_FILE.exists() else {}
    for name in chosen or names():
        (result,) = run([name])
        print(f"{name}: {result.detail}", flush=True)
        seeds.pop(name, None)
        if result.verdict is Verdict.HELD:
            seeds[name] = result.counts["seed"]
        kept = {each: seeds[each] for each in names() if each in seeds}
        write_text(RECORDED_FILE, _HEAD + "".join(f"{each} = {seed}\n" for each, seed in kept.items()))
        write_text(DOCUMENT, refreshed(DOCUMENT.read_text(encoding="utf-8"), kept))


if __name__ == "__main__":
    main(sys.argv[1:])
