"""Simulates many hours of a cluster in several processes, and keeps each, so that a stopped year goes on."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from mqproof.fuzz import hours
from mqproof.fuzz.engine.findings import project_version
from mqproof.fuzz.engine.verdict import catalogue_id
from mqproof.fuzz.hours import Hour
from mqproof.report.model import Report, Result, Verdict, Witness

_KEPT: Final = "hours.ndjson"
_WITNESSES_MAX: Final = 20


class YearFileError(ValueError):
    """The kept hours cannot be read."""


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: str
    hour: Hour


def run(
    folder: Path, count: int, workers: int, seconds_max: float, on_hour: Callable[[Mapping[int, Hour]], None]
) -> dict[int, Hour]:
    """Simulate the first `count` hours; return each by its number. When time is over, no more begin.

    Hours that the folder has from the same version of mqproof are not simulated again.

    Raises:
        YearFileError: the file in the folder is not one of kept hours. OSError: it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / _KEPT
    done = {number: hour for number, hour in _read(file).items() if number < count}
    left = iter([number for number in range(count) if number not in done])
    deadline = time.monotonic() + seconds_max
    with ProcessPoolExecutor(workers) as pool, file.open("ab") as kept:
        waiting = {pool.submit(hours.simulate, number) for number in islice(left, workers)}
        while waiting:
            ended = next(as_completed(waiting))
            waiting.remove(ended)
            hour = ended.result()
            done[hour.number] = hour
            kept.write(msgspec.json.encode(_Kept(project_version(), hour)) + b"\n")
            kept.flush()
            on_hour(done)
            if time.monotonic() < deadline and (number := next(left, None)) is not None:
                waiting.add(pool.submit(hours.simulate, number))
    return done


def _read(file: Path) -> dict[int, Hour]:
    """Return the hours of this version. A last line that was not written to its end is removed."""
    if not file.exists():
        return {}
    *lines, unfinished = file.read_bytes().split(b"\n")
    if unfinished:
        os.truncate(file, file.stat().st_size - len(unfinished))
    found = {}
    for at, line in enumerate(lines, 1):
        try:
            kept = msgspec.json.decode(line, type=_Kept)
        except msgspec.MsgspecError as error:
            raise YearFileError(f"{file}, line {at}: a simulated hour expected: {error}") from None
        if kept.version == project_version():
            found[kept.hour.number] = kept.hour
    return found


def report(simulated: Iterable[Hour]) -> Report:
    """Return the report: one result for each invariant, with the number of hours that tested it."""
    every = tuple(simulated)
    seconds, cpu_s = sum(hour.simulated_s for hour in every), sum(hour.cpu_s for hour in every)
    facts = {
        "simulated days": f"{seconds / 86_400:.1f}",
        "hours": f"{len(every):,}",
        "sends": f"{sum(hour.sends for hour in every):,}",
        "faults": f"{sum(hour.faults for hour in every):,}",
        "processor seconds": f"{cpu_s:,.0f}",
        "simulated seconds a processor second": f"{seconds / cpu_s:.0f}" if cpu_s else "none",
    }
    return Report("mqproof fuzz year", tuple(map(_result_of(every), _names(every))), facts)


def _names(every: Iterable[Hour]) -> tuple[str, ...]:
    return (*hours.INVARIANTS, *sorted({hour.invariant for hour in every} - {"", *hours.INVARIANTS}))


def _result_of(every: tuple[Hour, ...]) -> Callable[[str], Result]:
    tested = Counter(name for hour in every for name in hour.checked)

    def result(name: str) -> Result:
        found = [hour for hour in every if hour.invariant == name]
        return Result(
            id=catalogue_id(name, "year"),
            name=name,
            layer="fuzz",
            verdict=Verdict.VIOLATED if found else Verdict.HELD if tested[name] else Verdict.UNKNOWN,
            counts={"hours": tested[name]},
            witnesses=tuple(_witness(hour) for hour in found[:_WITNESSES_MAX]),
            detail=hours.INVARIANTS.get(name, "an error that the code does not document"),
            replay=f"mqproof fuzz year --hour {found[0].number}" if found else "",
            found=len(found),
        )

    return result


def _witness(hour: Hour) -> Witness:
    return Witness(f"{hour.message} (hour {hour.number})")
