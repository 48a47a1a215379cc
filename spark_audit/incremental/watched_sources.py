"""What a watch reads, recorded in its state: the places it keeps there apply to these inputs only."""

import json
from pathlib import Path
from typing import Any, Final

from mqproof.report.staging import file_beside
from mqproof.spark_audit.incremental.watch import Source
from mqproof.spark_audit.sources.inputs import InputError

_RECORD: Final = ".sources.json"

LOCAL: Final = "local"
SPARK: Final = "spark"


def engine_of(state: Path) -> str | None:
    """Return the engine of the watch to which a state belongs; None if there was no watch yet."""
    record = _read(state)
    # Watches of versions up to 0.2.0 were of Spark.
    return None if record is None else record.get("engine", SPARK)


def check_sources(state: Path, source: Source, engine: str) -> None:
    """Record the watched inputs and the engine, or compare them with the recorded ones.

    Raises:
        InputError: the state belongs to another watch, or a folder does not exist.
    """
    for folder in source.folders:
        if not folder.is_dir():
            raise InputError(f"{folder}: not a folder, expected one into which event logs are moved")
    if not (source.folders or source.topics):
        raise InputError("nothing to watch: no folder and no topic")
    given = {
        "folders": sorted({str(folder.absolute()) for folder in source.folders}),
        "topics": sorted((source.topics or {}).get("topics", "").split(",")),
    }
    if (known := _read(state)) is not None:
        if known.get("engine", SPARK) != engine:
            raise InputError(f"{state}: belongs to a watch with --engine {known.get('engine', SPARK)}")
        if any(known[name] != given[name] for name in given):
            watched = ", ".join(filter(None, (*known["folders"], *known["topics"])))
            raise InputError(
                f"{state}: belongs to a watch of {watched}, expected the same, or another --state"
            )
        return
    with file_beside(state / _RECORD) as temporary:
        temporary.write_text(json.dumps({**given, "engine": engine}), encoding="utf-8")
        temporary.replace(state / _RECORD)


def _read(state: Path) -> dict[str, Any] | None:
    try:
        known: dict[str, Any] = json.loads((state / _RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return known
