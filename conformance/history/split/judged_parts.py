"""Splits the file of a history into parts, judges them one after the other, and merges the findings.

First the parts by message are judged, which also find what the parts by queue need of each other. Then come
the parts by queue, and the offset ids that these found. A finding is violated if it is so in any part; counts
are added.
"""

import errno
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from mqproof.conformance.engine.finding import WITNESSES_MAX, Finding
from mqproof.conformance.history import linearizations
from mqproof.conformance.history.certificates import CERTIFIED, WITHOUT_REASON_MAX, certificate
from mqproof.conformance.history.parallel import Timed, forks
from mqproof.conformance.history.record import Record
from mqproof.conformance.history.rules import Key
from mqproof.conformance.history.split.part_stages import (
    Work,
    evidence_file,
    foreign_file,
    judge_messages,
    judge_offset_ids,
    judge_part,
    judge_queues,
    orders_file,
)
from mqproof.conformance.history.split.splitter import part_file, split
from mqproof.report.model import Verdict

_MAXIMA: Final = frozenset({"worst_ms"})
"""The counts that are maxima: of all parts, the largest one counts."""

_work: Work | None = None
"""The history whose parts the forked processes judge."""


class FullDiskError(Exception):
    """The disk of the parts is full. The message says how much they need, and where."""


class Found(NamedTuple):
    """The findings on a history that was judged in parts."""

    whole: Record
    """What is known of the whole history, without the operations of the parts."""
    findings: Timed
    rows: list[linearizations.Row]
    """The rows of the table of orders."""


def judge_in_parts(
    path: Path, parts: int, processes: int, certificate_file: BinaryIO | None, order_file: BinaryIO | None
) -> Found:
    """Judge the history of a file in so many parts.

    The parts are in a folder for temporary files, which is removed at the end.

    Raises:
        HistoryError: a line is not of a history.
        FullDiskError: the disk of the temporary folder is full.
        KilledProcessError: a process was killed, as it is if there is no memory left.
        OSError: the file cannot be read, or a part cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="mqproof-history-") as name:
        folder = Path(name)
        with path.open("rb") as file, _enough_space(name):
            whole, queues = split(file, str(path), folder, parts)
        is_certified = certificate_file is not None and not whole.gap_count
        work = Work(whole, queues, folder, parts, is_certified, order_file is not None)
        judged = _Judged(work)
        with _enough_space(name), _pool(work, processes) as pool:
            judged.run(pool)
        if certificate_file is not None and is_certified:
            for rule in CERTIFIED:
                certificate_file.writelines(judged.certificate(rule))
        if order_file is not None:
            for part in range(parts):
                with orders_file(folder, part).open("rb") as orders:
                    shutil.copyfileobj(orders, order_file)
        return Found(whole, judged.merged(), judged.rows)


@contextmanager
def _enough_space(folder: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise FullDiskError(
                f"{folder}: {error.strerror}; the parts of a history need about three times its size,"
                " in the folder that TMPDIR names"
            ) from None
        raise


@contextmanager
def _pool(work: Work, processes: int) -> Iterator[Executor | None]:
    """Yield processes that share what is known of the whole history; None for this process."""
    global _work  # a fork inherits it; an argument would be sent
    _work = work
    try:
        if processes < 2 or work.parts < 2:
            yield None
        else:
            with forks(min(processes, work.parts)) as pool:
                yield pool
    finally:
        _work = None


def _known() -> Work:
    assert _work is not None, "the process was not forked by `judge_in_parts`"
    return _work


def _messages(part: int) -> tuple[Timed, dict[int, bytes]]:
    return judge_messages(_known(), part)


def _queues(part: int) -> tuple[Timed, dict[int, bytes], list[linearizations.Row]]:
    return judge_queues(_known(), part)


def _offset_ids(part: int) -> Timed:
    return judge_offset_ids(_known(), part)


class _Judged:
    """The findings of the parts so far."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._found: dict[str, list[tuple[Key, int, Finding, float]]] = {}
        self.rows: list[linearizations.Row] = []

    def run(self, pool: Executor | None) -> None:
        """Judge all parts, each stage in all processes of the pool."""
        map_: Callable[..., Iterable[Any]] = map if pool is None else pool.map
        work, parts = self._work, range(self._work.parts)
        self._add(Key.REQUEST, 0, judge_part(work, Key.REQUEST, 0, work.whole))
        for part, (found, foreign) in enumerate(map_(_messages, parts)):
            self._add(Key.MESSAGE, part, found)
            for number, text in foreign.items():
                _append(foreign_file(work.folder, number), text)
        for part, (found, ids, rows) in enumerate(map_(_queues, parts)):
            self._add(Key.QUEUE, part, found)
            self.rows += rows
            for number, text in ids.items():
                _append(part_file(work.folder, Key.OFFSET_ID, number), text)
        for part, found in enumerate(map_(_offset_ids, parts)):
            self._add(Key.OFFSET_ID, part, found)

    def _add(self, key: Key, part: int, found: Timed) -> None:
        for rule, (finding, seconds) in found.items():
            self._found.setdefault(rule, []).append((key, part, finding, seconds))

    def merged(self) -> Timed:
        return {
            rule: (merge([each[2] for each in found]), sum(each[3] for each in found))
            for rule, found in self._found.items()
        }

    def certificate(self, rule: str) -> Iterator[bytes]:
        """Yield the certificate of a rule: the evidence of the parts with its verdict."""
        verdict = merge([each[2] for each in self._found[rule]]).verdict
        files = (
            evidence_file(self._work.folder, rule, key, part)
            for key, part, finding, _ in self._found[rule]
            if finding.verdict is verdict
        )
        texts = (file.read_bytes() for file in files if file.exists())
        yield from certificate(rule, verdict, texts if verdict is Verdict.HELD else _first(texts))


def _first(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the first elements of the evidence: one proves the verdict."""
    elements = [each for text in texts for each in msgspec.json.decode(b"[" + text + b"]")]
    yield msgspec.json.encode(elements[:WITHOUT_REASON_MAX])[1:-1]


def _append(file: Path, text: bytes) -> None:
    with file.open("ab") as out:
        out.write(text)


def merge(findings: list[Finding]) -> Finding:
    """Return the finding of a rule on a history from those on its parts."""
    verdicts = {each.verdict for each in findings}
    # A part without an operation of a rule is unknown. One with operations that decide nothing names them.
    undecided = any(each.verdict is Verdict.UNKNOWN and each.witnesses for each in findings)
    if Verdict.VIOLATED in verdicts:
        verdict = Verdict.VIOLATED
    elif Verdict.HELD in verdicts and not undecided:
        verdict = Verdict.HELD
    else:
        verdict = Verdict.UNKNOWN if Verdict.UNKNOWN in verdicts else Verdict.NOT_TESTED
    counts: dict[str, int] = {}
    for each in findings:
        for name, count in each.counts.items():
            counts[name] = max(counts.get(name, 0), count) if name in _MAXIMA else counts.get(name, 0) + count
    witnesses = [witness for each in findings if each.verdict is verdict for witness in each.witnesses]
    limit = WITNESSES_MAX if verdict is Verdict.VIOLATED else WITHOUT_REASON_MAX
    explained = (
        () if verdict is Verdict.VIOLATED else tuple(one for each in findings for one in each.explained)
    )
    return Finding(verdict, counts, tuple(witnesses[:limit]), explained)
