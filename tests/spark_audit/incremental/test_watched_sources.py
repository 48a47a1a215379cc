"""Tests that a state belongs to one watch: its inputs, and its engine."""

import json
from pathlib import Path

import pytest

from mqproof.spark_audit.incremental.watch import Source
from mqproof.spark_audit.incremental.watched_sources import LOCAL, SPARK, check_sources, engine_of
from mqproof.spark_audit.sources.inputs import InputError


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, ...]:
    made = tuple(tmp_path / name for name in "ab")
    for folder in made:
        folder.mkdir()
    return made


def test_the_same_folders_in_another_order_are_the_same_watch(
    tmp_path: Path, folders: tuple[Path, ...]
) -> None:
    state = tmp_path / "state"
    assert engine_of(state) is None
    for source in (Source(folders), Source((*reversed(folders), folders[0]))):
        check_sources(state, source, LOCAL)
    assert engine_of(state) == LOCAL
    assert len(list(state.iterdir())) == 1


def test_a_state_of_another_watch_is_refused(tmp_path: Path, folders: tuple[Path, ...]) -> None:
    state = tmp_path / "state"
    check_sources(state, Source(folders), LOCAL)
    for other in (Source(folders[:1]), Source(folders, {"topics": "t"})):
        with pytest.raises(InputError, match=r"state: belongs to a watch of .*/a, .*/b, expected the same"):
            check_sources(state, other, LOCAL)
    with pytest.raises(InputError, match="state: belongs to a watch with --engine local"):
        check_sources(state, Source(folders), SPARK)


def test_a_state_without_an_engine_is_of_spark(tmp_path: Path, folders: tuple[Path, ...]) -> None:
    known = {"folders": sorted(map(str, folders)), "topics": [""]}
    (tmp_path / ".sources.json").write_text(json.dumps(known))
    assert engine_of(tmp_path) == SPARK
    check_sources(tmp_path, Source(folders), SPARK)


@pytest.mark.parametrize(
    ("names", "message"), [(("nowhere",), "nowhere: not a folder"), ((), "nothing to watch")]
)
def test_missing_inputs_are_refused(tmp_path: Path, names: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_sources(tmp_path, Source(tuple(tmp_path / name for name in names)), LOCAL)
    assert engine_of(tmp_path) is None
