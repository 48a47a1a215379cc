"""Programs for a store on a simulated disk: one byte per operation, some followed by parameters.

Missing bytes are read as zeros, so any bytes are a valid program. Operations write, flush, crash and damage
the store. Each crash is followed by a recovery, which is judged. After damage that no crash can cause, fewer
invariants are promised, and the program ends with the next recovery.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from mqproof.fuzz.store.judge import Recovered, judge
from mqproof.fuzz.store.simulated_store import DIRECTORY, QUEUES, SimulatedStore
from mqproof.fuzz.target import Finding, unobserved
from mqproof.impl.runtime.simulated_disk import Image
from mqproof.impl.store.config import QUEUE_UNIT_BYTES, FlushMode
from mqproof.impl.store.errors import StoreError
from mqproof.impl.store.results import Recovery

_OPERATIONS_MAX: Final = 48
_LIVES_MAX: Final = 4
"""The maximum number of recoveries in one program. Each is judged in full, which takes time."""
_BODY_BYTES: Final = (2, 10, 100, 330)


_RECORD_NUMBERS: Final = (
    (0, 4),
    (4, 4),
    (12, 4),
    (16, 4),
    (20, 8),
    (28, 8),
    (36, 4),
    (40, 8),
    (56, 8),
    (72, 4),
)
"""Offset and width of numbers in a record: size, magic, queue id, flag, queue offset, commit offset, system
flag, born time, store time, reconsume times.
"""
_ENTRY_NUMBERS: Final = ((0, 8), (8, 4), (12, 8))
_VALUES: Final = (0, 1, 2, 3, 4, 5, 8, 12, 16, 48, 91, 512, -1, -(1 << 63), (1 << 63) - 1, 1 << 40, 1 << 31)
"""The values written over such a number, cut to its width."""

SYNC: Final = 0
ASYNC: Final = 1


def program(*parts: str | int | bytes) -> bytes:
    """Return a program built from names of operations and their parameters; it begins with SYNC or ASYNC."""
    names = {name: bytes([number]) for number, name in enumerate(OPERATIONS)}
    return b"".join(
        names[part] if isinstance(part, str) else bytes([part]) if isinstance(part, int) else part
        for part in parts
    )


class Run:
    """One run of a program."""

    def __init__(self, data: bytes, checked: Counter[str]) -> None:
        self._data = data
        self._at = 0
        self._checked = checked
        mode = FlushMode.SYNC_FLUSH if self.take() % 2 == 0 else FlushMode.ASYNC_FLUSH
        self.simulated = SimulatedStore(mode)
        self.crash_recovery_at: int | None = None
        self.garbage = False
        """Whether there is garbage in a part of the log that was not durable."""
        self.damaged = False
        """Whether the files may have been changed in any way."""
        self.over = False
        """Whether nothing more is promised about this store, or enough recoveries were judged."""
        self._lives = 0

    def take(self) -> int:
        """Return the next byte of the program, or 0 after its end."""
        value = self._data[self._at] if self._at < len(self._data) else 0
        self._at += 1
        return value

    def run(self) -> None:
        for _ in range(_OPERATIONS_MAX):
            if self._at >= len(self._data) or self.over:
                break
            number = self.take() % _NUMBERS
            if number < len(_BY_NUMBER):
                _BY_NUMBER[number](self)
        if not self.over:
            _crash_process(self)
            self._recover_again()

    def recover(self, *, process_only: bool) -> None:
        """Recover after a crash and check the store against its promises."""
        simulated = self.simulated
        try:
            recovery = simulated.load(self.crash_recovery_at)
            if recovery is None:
                # The process ended during recovery; data that was not durable may be lost now.
                simulated.crash_machine(self.draw_image())
                process_only = False
                recovery = simulated.load()
        except StoreError as error:
            self._refused(error)
            return
        assert recovery is not None, "no fault stops the second recovery"
        self.crash_recovery_at = None
        if self.damaged:
            self._checked["DamageRefusedByName"] += 1
            self._recover_again()
            with unobserved():
                self._serve()
            self.over = True
        else:
            self._judge(recovery, process_only)

    def _judge(self, recovery: Recovery, process_only: bool) -> None:
        simulated = self.simulated
        after = Recovered(
            store=simulated.store,
            truth=tuple(simulated.truth),
            durable_end=simulated.durable_end,
            end=recovery.recovered_end,
            truncated=recovery.truncated_bytes > 0,
            process_only=process_only,
            garbage=self.garbage,
        )
        with unobserved():
            judge(after, self._checked)
        simulated.settle(recovery)
        self._lives += 1
        self.over = self.garbage or self._lives == _LIVES_MAX

    def draw_image(self) -> Image:
        """Return what a crash of the machine keeps, drawn from the program: any number of bytes and names."""
        most = self.simulated.disk.unsynced()
        names = {folder: self.take() % (count + 1) for folder, count in sorted(most.names.items())}
        contents = {label: _portion(self.take(), count) for label, count in sorted(most.contents.items())}
        return Image(names, contents)

    def _refused(self, error: StoreError) -> None:
        self.over = True
        if not (self.damaged or self.garbage):
            raise Finding("RecoveredPrefix", f"recoverable files are refused: {error}")
        self._checked["DamageRefusedByName"] += 1
        if f"{DIRECTORY}/" not in str(error):
            raise Finding("DamageRefusedByName", f"the error names no file: {error}")

    def _recover_again(self) -> None:
        """Check that a second recovery of the same files changes nothing."""
        simulated = self.simulated
        first = simulated.store.log_end
        simulated.crash_process()
        with unobserved():
            again = simulated.load()
        assert again is not None, "no fault stops this recovery"
        self._checked["RecoveryIdempotent"] += 1
        if (again.recovered_end, again.truncated_bytes, again.redispatched) != (first, 0, 0):
            raise Finding("RecoveryIdempotent", f"recovered to {first} before, then {again}")
        for queue in QUEUES:
            end = simulated.store.max_offset(*queue)
            for offset in range(simulated.store.min_offset(*queue), min(end, 100)):
                simulated.store.get(*queue, offset, 1)

    def _serve(self) -> None:
        """Check that a damaged store that opened accepts messages and returns them, also after a crash.

        No other record may appear after them in the log.
        """
        simulated = self.simulated
        self._checked["ServesAfterDamage"] += 1
        simulated.store.begin()
        simulated.truth = []
        for queue in QUEUES:
            simulated.append(queue, 10)
        simulated.flush_log()
        simulated.store.dispatch()
        self._give_back("when they were taken")
        simulated.crash_process()
        try:
            simulated.load()
        except StoreError as error:
            raise Finding("ServesAfterDamage", f"it opened once, then failed: {error}") from None
        self._give_back("after a crash")

    def _give_back(self, when: str) -> None:
        store, truth = self.simulated.store, self.simulated.truth
        got = [store.get(*each.queue, each.queue_offset, 1).records for each in truth]
        if got != [(each.data,) for each in truth] or store.log_end != truth[-1].end:
            text = f"{len(truth)} messages up to {truth[-1].end}, and {when} the log ends at {store.log_end}"
            raise Finding("ServesAfterDamage", f"{text}; read back are {list(map(len, got))}")


# Operations of a running store.


def _append(run: Run) -> None:
    choice = run.take()
    if not run.simulated.store.failure:
        run.simulated.append(QUEUES[choice % 3], _BODY_BYTES[choice // 3 % 4])


def _flush_log(run: Run) -> None:
    run.simulated.flush_log()


def _dispatch(run: Run) -> None:
    run.simulated.store.dispatch()


def _flush_queues(run: Run) -> None:
    run.simulated.flush_queues()


def _write_checkpoint(run: Run) -> None:
    run.simulated.write_checkpoint()


def _wait(run: Run) -> None:
    run.simulated.clock.advance_ms(500 * run.take())


def _flush_log_fails(run: Run) -> None:
    run.simulated.flush_log_fails()


# Crashes: they remove only data that was not durable.


def _crash_process(run: Run) -> None:
    run.simulated.crash_process()
    run.recover(process_only=True)


def _crash_machine(run: Run) -> None:
    run.simulated.crash_machine(run.draw_image())
    run.recover(process_only=False)


def _lose_power(run: Run) -> None:
    run.simulated.crash_machine(Image())
    run.recover(process_only=False)


def _exit_cleanly(run: Run) -> None:
    run.simulated.stop()
    run.simulated.crash_machine(Image())
    run.recover(process_only=False)


def _crash_next_recovery(run: Run) -> None:
    run.crash_recovery_at = 1 + run.take() % 32


# Losses and damage. They take effect with the next recovery, and handles of the running store end here.


def _old_checkpoint(run: Run) -> None:
    """Restore an older checkpoint. It only means that recovery starts earlier."""
    if run.simulated.checkpoints:
        content = run.simulated.checkpoints[run.take() % len(run.simulated.checkpoints)]
        _stopped(run)
        run.simulated.write(f"{DIRECTORY}/checkpoint", content)
        run.recover(process_only=False)


def _no_checkpoint(run: Run) -> None:
    if run.simulated.read("checkpoint") is not None:
        _stopped(run)
        run.simulated.remove(f"{DIRECTORY}/checkpoint")
        run.recover(process_only=False)


def _no_queue(run: Run) -> None:
    """Remove all files of one queue. Everything they hold can be rebuilt from the log."""
    files = _queue_files(run)
    _lose_queue_files(run, files)


def _no_queue_end(run: Run) -> None:
    """Remove the first or the last files of one queue."""
    files, choice = _queue_files(run), run.take()
    count = choice // 2 % (len(files) + 1)
    _lose_queue_files(run, files[:count] if choice % 2 == 0 else files[len(files) - count :])


def _queue_files(run: Run) -> list[str]:
    """Stop the store and return the files of one of its queues."""
    topic, queue_id = QUEUES[run.take() % 3]
    _stopped(run)
    folder = f"{DIRECTORY}/consumequeue/{topic}/{queue_id}/"
    return [path for path in run.simulated.files() if path.startswith(folder)]


def _lose_queue_files(run: Run, files: list[str]) -> None:
    for path in files:
        run.simulated.remove(path)
    run.recover(process_only=False)


def _garbage_tail(run: Run) -> None:
    """Put arbitrary bytes somewhere after the durable part of the log."""
    start, size = run.simulated.durable_end + run.take(), run.take() % 64
    _put_behind(run, start, bytes(run.take() for _ in range(size)))


def _stale_tail(run: Run) -> None:
    """Put a copy of an earlier record right after the durable part of the log."""
    simulated = run.simulated
    before = [each for each in simulated.truth if each.end <= simulated.durable_end]
    if before:
        _put_behind(run, simulated.durable_end, before[run.take() % len(before)].data)


def _put_behind(run: Run, start: int, garbage: bytes) -> None:
    """Stop the machine and leave garbage from the commit offset `start` on."""
    simulated, size = run.simulated, len(garbage)
    segment_bytes = simulated.config.commit_log_segment_bytes
    name = f"commitlog/{start - start % segment_bytes:020d}"
    _stopped(run)
    content = simulated.read(name)
    if content is not None:
        offset = start % segment_bytes
        simulated.write(
            f"{DIRECTORY}/{name}", (content[:offset] + garbage + content[offset + size :])[:segment_bytes]
        )
        run.garbage = True
    run.recover(process_only=False)


def _overwrite(run: Run) -> None:
    """Overwrite a place in any file with bytes from the program."""
    path, content = _some_file(run)
    offset = run.take() << 8 | run.take()
    patch = bytes(run.take() for _ in range(run.take() % 32))
    offset %= len(content) + 1
    _damage(run, path, (content[:offset] + patch + content[offset + len(patch) :])[: len(content)])


def _copy_bytes(run: Run) -> None:
    """Copy part of a file to another place in it, which creates stale and misplaced records."""
    path, content = _some_file(run)
    start, to, size = run.take() * 4, run.take() * 4, run.take() * 2
    chunk = content[start : start + size]
    _damage(run, path, (content[:to] + chunk + content[to + len(chunk) :])[: len(content)])


def _spoil_record(run: Run) -> None:
    """Change a number in the header of a record. No checksum covers it."""
    _spoil(run, "commitlog/", [each.commit_offset for each in run.simulated.truth], _RECORD_NUMBERS)


def _spoil_entry(run: Run) -> None:
    """Change a number in an entry of a queue."""
    topic, queue_id = QUEUES[run.take() % 3]
    count = sum(each.queue == (topic, queue_id) for each in run.simulated.truth)
    places = [number * QUEUE_UNIT_BYTES for number in range(count)]
    _spoil(run, f"consumequeue/{topic}/{queue_id}/", places, _ENTRY_NUMBERS)


def _spoil(run: Run, folder: str, places: list[int], numbers: tuple[tuple[int, int], ...]) -> None:
    """Change one of the `numbers` (offset, width) at one of the places in a segmented file."""
    if not places:
        return
    place = places[run.take() % len(places)]
    at, width = numbers[run.take() % len(numbers)]
    value = _VALUES[run.take() % len(_VALUES)].to_bytes(8, "big", signed=True)[-width:]
    _stopped(run)
    config = run.simulated.config
    log = folder.startswith("commitlog")
    segment_bytes = config.commit_log_segment_bytes if log else config.consume_queue_segment_bytes
    name = f"{folder}{place - place % segment_bytes:020d}"
    content = run.simulated.read(name)
    if content is not None:
        offset = place % segment_bytes + at
        changed = content[:offset] + value + content[offset + width :]
        run.simulated.write(f"{DIRECTORY}/{name}", changed[: len(content)])
        run.damaged = True
    run.recover(process_only=False)


def _truncate(run: Run) -> None:
    path, content = _some_file(run)
    _damage(run, path, content[: _portion(run.take(), len(content))])


def _lose_file(run: Run) -> None:
    path, _ = _some_file(run)
    run.simulated.remove(path)
    run.damaged = True
    run.recover(process_only=False)


def _foreign_file(run: Run) -> None:
    """Add a file that does not belong in the folder."""
    path, content = _some_file(run)
    name = (".DS_Store", "lost+found", "7", "00000000000000000100", "99999999999999999999")[run.take() % 5]
    _damage(run, f"{path.rpartition('/')[0]}/{name}", content[:64])


def _damage(run: Run, path: str, content: bytes) -> None:
    run.simulated.write(path, content)
    run.damaged = True
    run.recover(process_only=False)


def _some_file(run: Run) -> tuple[str, bytes]:
    """Stop the store and return one of its files with its content."""
    choice = run.take()
    _stopped(run)
    files = run.simulated.files()
    path = files[choice % len(files)]
    return path, run.simulated.read(path.removeprefix(f"{DIRECTORY}/")) or b""


def _stopped(run: Run) -> None:
    """Stop the machine and keep all unsynced data: the program itself chooses what is lost."""
    run.simulated.crash_machine(run.simulated.disk.unsynced())


def _portion(choice: int, most: int) -> int:
    """Return a number from 0 to `most` for a byte of the program.

    Bytes below 128 divide the range into equal parts. The others count back from `most`, one by one.
    """
    return most * choice // 127 if choice < 128 else max(0, most - (choice - 128))


_RUNNING: Final = {
    "append": _append,
    "flush_log": _flush_log,
    "dispatch": _dispatch,
    "flush_queues": _flush_queues,
    "write_checkpoint": _write_checkpoint,
    "wait": _wait,
    "flush_log_fails": _flush_log_fails,
    "crash_next_recovery": _crash_next_recovery,
}
ENDING: Final = {
    "crash_process": _crash_process,
    "crash_machine": _crash_machine,
    "lose_power": _lose_power,
    "exit_cleanly": _exit_cleanly,
}
HARMING: Final = {
    "old_checkpoint": _old_checkpoint,
    "no_checkpoint": _no_checkpoint,
    "no_queue": _no_queue,
    "garbage_tail": _garbage_tail,
    "overwrite": _overwrite,
    "copy_bytes": _copy_bytes,
    "truncate": _truncate,
    "lose_file": _lose_file,
    "foreign_file": _foreign_file,
    "stale_tail": _stale_tail,
    "no_queue_end": _no_queue_end,
    "spoil_record": _spoil_record,
    "spoil_entry": _spoil_entry,
}
OPERATIONS: Final[dict[str, Callable[[Run], None]]] = {**_RUNNING, **ENDING, **HARMING}
_BY_NUMBER: Final = tuple(OPERATIONS.values())
"""Indexed by the byte of the program modulo _NUMBERS. Other numbers do nothing, so that saved programs keep
their meaning when operations are appended.
"""
_NUMBERS: Final = 32
assert len(_BY_NUMBER) <= _NUMBERS
