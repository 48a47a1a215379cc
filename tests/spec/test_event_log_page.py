"""The page that describes the event log has an example row for every kind, and its rows are events."""

import re

import pytest

from mqproof.spec.events import COLUMNS, Event, Kind, decode
from tests.protocol_chapters import FOLDER

PAGE = FOLDER / "event-log.md"
BLOCKS = re.findall(r"^```json\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def examples() -> list[Event]:
    rows = [line for block in BLOCKS for line in block.splitlines()]
    return [decode(row.encode(), f"{PAGE.name}: {row[:40]}") for row in rows]


def test_every_kind_has_an_example() -> None:
    assert {event.kind for event in examples()} == set(Kind)


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_is_in_a_table(kind: Kind) -> None:
    first_cells = re.findall(r"^\| ([^|]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert kind in {word for cell in first_cells for word in re.split(r",? ", cell)}


def test_every_column_is_in_the_first_table() -> None:
    table = PAGE.read_text(encoding="utf-8").split("## Events of a broker")[0]
    named = {word for cell in re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE) for word in cell.split(", ")}
    assert set(COLUMNS) <= named


def test_a_first_event_has_the_schema_version() -> None:
    assert all("schema" in event.attrs for event in examples() if event.seq == 0)
