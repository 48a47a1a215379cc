"""Tests the corpus: it persists, several workers use it, and it never holds an input twice."""

from pathlib import Path

from mqproof.fuzz.engine.corpus import Corpus, name_of


def test_inputs_are_kept_on_disk(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path / "new" / "folder")
    assert corpus.add(b"one")
    assert not corpus.add(b"one")
    assert corpus.add(b"")
    again = Corpus(tmp_path / "new" / "folder")
    assert sorted(again.unread()) == [b"", b"one"]
    assert list(again.unread()) == []
    assert not again.add(b"one")
    assert len(again) == 2


def test_a_file_is_named_by_its_content(tmp_path: Path) -> None:
    Corpus(tmp_path).add(b"one")
    assert [path.name for path in tmp_path.iterdir()] == [name_of(b"one")]


def test_seeds_written_by_people_are_read_and_unfinished_files_are_not(tmp_path: Path) -> None:
    (tmp_path / "my-seed.bin").write_bytes(b"seed")
    (tmp_path / ".half.tmp").write_bytes(b"half")
    (tmp_path / "folder").mkdir()
    assert list(Corpus(tmp_path).unread()) == [b"seed"]


def test_inputs_that_another_worker_adds_are_read(tmp_path: Path) -> None:
    one, two = Corpus(tmp_path), Corpus(tmp_path)
    one.add(b"new")
    assert list(one.unread()) == []
    assert list(two.unread()) == [b"new"]


def test_without_a_folder_the_corpus_is_kept_in_memory() -> None:
    corpus = Corpus()
    assert corpus.add(b"one")
    assert list(corpus.unread()) == []
