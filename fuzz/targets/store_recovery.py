"""SyncAckedDurable, AsyncAckedSurvivesProcessCrash, QueuePointsIntoLog, QueueOffsetsDense, RecoveredPrefix,
IndexRebuildable: they hold in the store that recovery gives after any crash.

After any other change to the files, recovery either gives a store or refuses with an error that names the
file. An input is a program for a store on a simulated disk (fuzz/store/program.py).
"""

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Final

from mqproof.fuzz.store.program import ASYNC, ENDING, HARMING, SYNC, Run, program

# Parts of programs to begin with. The parameter of "append" is queue + 3 * size.
_WRITTEN: Final = ("append", 0, "append", 5, "flush_log", "dispatch", "flush_queues", "write_checkpoint")
_UNSYNCED: Final = ("append", 0, "append", 6)


class StoreRecovery:
    name: ClassVar = "store-recovery"
    invariants: ClassVar = {
        "SyncAckedDurable": "a record that the store reported as durable survives any crash",
        "AsyncAckedSurvivesProcessCrash": "a record that was appended survives a crash of the process",
        "QueuePointsIntoLog": "a queue entry points at the complete record of its topic, queue and offset",
        "QueueOffsetsDense": "after recovery, the offsets of a queue continue without gap or repetition",
        "RecoveredPrefix": "recovery yields a prefix of the appended records, none altered or invented",
        "IndexRebuildable": "every record in the recovered log can be read through its queue",
        "DamageRefusedByName": "damaged files are refused with an error that names the file, or they are cut",
        "ServesAfterDamage": "a damaged store that opens returns exactly the messages it accepts afterwards",
        "RecoveryIdempotent": "a second recovery finds the same log end and changes nothing",
    }
    watched: ClassVar = ("mqproof.impl.store",)
    input_bytes_max: ClassVar = 160

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()

    def seeds(self) -> Iterable[bytes]:
        for mode in SYNC, ASYNC:
            for ending in ENDING:
                yield program(mode, *_WRITTEN, *_UNSYNCED, ending, b"\x81" * 8)
                yield program(mode, *_WRITTEN, ending, *_UNSYNCED, "crash_process", *_UNSYNCED, "lose_power")
                yield program(mode, *_UNSYNCED, "crash_next_recovery", 5, ending, b"\x83" * 8)
            for harm in HARMING:
                yield program(mode, *_WRITTEN, "wait", 10, *_WRITTEN, *_UNSYNCED, harm, 3, 140, 8, 1, 2, 3)
        # A changed number: the queue offset of a record, and the position that an entry points at.
        yield program(SYNC, *_WRITTEN, *_WRITTEN, "spoil_record", 1, 4, 3)
        yield program(SYNC, *("append", 3) * 6, "flush_log", "dispatch", "spoil_record", 1, 1, 0)
        yield program(ASYNC, *_WRITTEN, *_WRITTEN, "spoil_entry", 0, 0, 0, 10)
        yield program(SYNC, *_WRITTEN, *_UNSYNCED, "flush_log_fails", "lose_power")
        yield program(ASYNC, *_UNSYNCED, "dispatch", "flush_queues", "lose_power")
        yield program(ASYNC, "append", 9, "garbage_tail", 100, 4, b"oops")
        # The last record of a queue is durable and its entry is not. The records after it are in another
        # segment and newer by seconds. A checkpoint that ignores the entry would hide the record permanently.
        early = ("append", 0, "append", 2, "flush_log", "dispatch", "flush_queues", "append", 8, "append", 1)
        later = (
            "flush_log",
            "dispatch",
            "wait",
            10,
            "append",
            1,
            "flush_log",
            "dispatch",
            "write_checkpoint",
        )
        yield program(ASYNC, *early, *later, "lose_power")
        # All records of a queue are older than the position where recovery begins, and some of its files are
        # missing.
        old = ("append", 11, "append", 9, "append", 9, "flush_log", "dispatch", "flush_queues", "wait", 10)
        new = ("append", 9, "append", 9, "flush_log", "dispatch", "flush_queues", "write_checkpoint")
        yield program(ASYNC, *old, *new, "no_queue", 2, *_UNSYNCED, "crash_machine", 1, 2, 3)
        yield program(SYNC, *old, *new, *new, "no_queue_end", 0, 2, *_UNSYNCED, "lose_power")

    def run(self, data: bytes) -> None:
        tested: Counter[str] = Counter()
        try:
            Run(data, tested).run()
        finally:
            self.checked.update(list(+tested))  # inputs are counted, not recoveries


TARGET = StoreRecovery
