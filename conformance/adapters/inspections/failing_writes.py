"""A disk that fails to write: which send is refused, what is kept, and when the broker works again.

See docs/reference/protocol/storing.md, "Disk errors".
"""

import asyncio
import errno
from dataclasses import dataclass
from typing import Final

from mqproof.conformance.adapters.inspections.kept_messages import CLUSTER, flushed
from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.stopped_files import compare_files
from mqproof.conformance.adapters.inspections.store_damages import CHECKPOINT, INDEX, LOG, QUEUES, SMALL
from mqproof.conformance.adapters.inspections.traffic import make_topic, pull, send
from mqproof.conformance.answers.stored_record import read_records
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.impl.runtime.simulated_disk import Step
from mqproof.impl.store.config import FlushMode

_WHY: Final = "the disk is broken"
_ABORT: Final = "/store/abort"
_UNWRITABLE: Final = 14
_SENDS: Final = 11


@dataclass(frozen=True, slots=True)
class _Case:
    """A kind of operation that fails, for the files of a folder."""

    kind: str
    folder: str
    codes: tuple[int, ...] = (0,)
    """The answers that the send may have whose files fail."""
    error: int = errno.EIO
    size: int = 0
    """The size of the writes that fail; 0 for any."""
    read_only: bool = True
    """Whether the broker refuses later sends."""

    @property
    def name(self) -> str:
        return f"{self.kind} of {self.folder} with error {self.error}, size {self.size}"

    def fail(self, step: Step) -> None:
        if step.kind == self.kind and step.path.startswith(self.folder) and self.size in (0, step.size):
            raise OSError(self.error, _WHY, step.path)


_PERHAPS: Final = (1, 10)
_CASES: Final = (
    _Case("write", LOG, _PERHAPS), _Case("create", LOG, _PERHAPS), _Case("sync", LOG, (0, *_PERHAPS)),
    _Case("sync_directory", LOG, (0, 10)), _Case("write", LOG, _PERHAPS, errno.ENOSPC),
    _Case("write", LOG, _PERHAPS, size=8),
    *(_Case(kind, folder) for folder in (QUEUES, INDEX) for kind in ("write", "create", "sync")),
    _Case("sync_directory", QUEUES), _Case("sync_directory", INDEX),
    _Case("write", QUEUES, (0,), errno.ENOSPC),
    *(_Case(kind, CHECKPOINT) for kind in ("write", "create", "sync", "replace")),
    *(_Case(kind, CHECKPOINT, (0,), error, read_only=False)
      for kind, error in (("write", errno.ENOSPC), ("create", errno.EDQUOT), ("sync", errno.ENOSPC))),
)  # fmt: skip


async def failing_writes(site: Site) -> None:
    """Let one kind of operation fail after another, and start again with a disk that works."""
    site.rule = chapters.DURABILITY
    site.watch.judges_answers = False  # the answers contradict each other after each new disk
    await make_topic(site, "t")
    for number in range(3):
        await send(site, "t", f"before {number}", of={"KEYS": "k"})
    await flushed()
    await site.cluster.stop(MASTER)
    whole = site.cluster.machines[MASTER].disk
    for case in _CASES:
        if not site.watch.wrong:
            site.replace_disk(whole.copy())
            site.watch.judges_answers = False
            await _failing(site, case)


async def _failing(site: Site, case: _Case) -> None:
    await site.cluster.start(MASTER)
    await asyncio.sleep(1)
    disk = site.cluster.machines[MASTER].disk
    disk.on_step = case.fail
    codes = await _sent(site, case.name)
    refused = codes.index(_UNWRITABLE) if _UNWRITABLE in codes else len(codes)
    site.compare(f"{case.name}: whether sends are refused", case.read_only, refused < len(codes))
    others = [code for code in codes[:refused] if code]
    site.compare(f"{case.name}: the other answers {codes}", True,
                 len(others) <= 1 and set(others) <= set(case.codes))  # fmt: skip
    if 0 not in case.codes:
        site.compare(f"{case.name}: the failed sends", 1, len(others))
    if others:
        site.compare(f"{case.name}: the answer before the refusals", others, codes[refused - 1 : refused])
    site.compare(
        f"{case.name}: the refusals", {_UNWRITABLE} if case.read_only else set(), set(codes[refused:])
    )
    disk.on_step = None
    await flushed()
    await send(site, "t", "still refused", expects=_UNWRITABLE if case.read_only else 0)
    await _restarted(site, case, codes)


async def _sent(site: Site, name: str) -> list[int]:
    """Send messages that fill segments of the log, of the queue and of the index; return the answers."""
    codes = []
    for number in range(_SENDS):
        answer = await send(site, "t", f"{number:02}" * 200, of={"KEYS": f"k{number}"}, expects=None)
        codes.append(answer.code)
        if answer.code == _UNWRITABLE:
            site.compare(f"{name}: whether the refusal says why", True, _WHY in (answer.remark or ""))
        await asyncio.sleep(1.3)
    return codes


async def _restarted(site: Site, case: _Case, codes: list[int]) -> None:
    """Stop, start and lose the power: everything that was stored is there, and nothing that was refused."""
    disk = site.cluster.machines[MASTER].disk
    await site.cluster.stop(MASTER)
    site.compare(f"{case.name}: whether the stop was not clean", case.read_only, disk.exists(_ABORT))
    await site.cluster.start(MASTER)
    await asyncio.sleep(1)
    for _ in range(2):
        found = await _bodies(site)
        expected = [f"before {number}" for number in range(3)]
        for number, code in enumerate(codes):
            body = f"{number:02}" * 200
            if code == 0 or (code in _PERHAPS and body in found):
                expected.append(body)
        if not case.read_only:
            expected.append("still refused")
        site.compare(
            f"{case.name}: the messages", [each[:9] for each in expected], [each[:9] for each in found]
        )
        await site.lose_power()
        await asyncio.sleep(1)
    answer = await send(site, "t", "again")
    site.compare(f"{case.name}: the next offset", str(len(expected)), answer.fields.get("queueOffset"))
    await site.cluster.stop(MASTER)
    site.compare(f"{case.name}: whether the last stop was clean", False, disk.exists(_ABORT))
    compare_files(site, case.name, SMALL)


async def _bodies(site: Site) -> list[str]:
    found: list[str] = []
    for _ in range(9):
        answer = await pull(site, "t", len(found), expects=None)
        if answer.code:
            break
        found += [each.body.decode() for each in read_records(answer.body)]
    return found


_OPTIONS: Final = {"store": SMALL, "cluster": CLUSTER}
FAILING_WRITES: Final = Inspection("failing writes", failing_writes, _OPTIONS)
FAILING_WRITES_SYNC: Final = Inspection(
    "failing flushed writes", failing_writes, _OPTIONS, flush=FlushMode.SYNC_FLUSH
)
