"""A store that was stopped, with messages in two queues, several segments and several index files."""

from typing import Final

from mqproof.conformance.adapters.store_copies.recovered_copies import RecoveredCopies
from mqproof.conformance.answers.store_on_disk import Shape
from mqproof.conformance.answers.watch import Watch
from mqproof.impl.remoting.message import Message
from mqproof.impl.runtime.network import SimulatedNetwork
from mqproof.impl.runtime.runtime import simulated
from mqproof.impl.runtime.simulated_disk import SimulatedDisk
from mqproof.impl.runtime.simulated_loop import SimulatedLoop, run_simulated
from mqproof.impl.store.config import FlushMode, StoreConfig
from mqproof.impl.store.files.sealed_file import write_sealed
from mqproof.impl.store.message_store import MessageStore

_CONFIG: Final = StoreConfig(
    flush_mode=FlushMode.SYNC_FLUSH,
    commit_log_segment_bytes=1024,
    consume_queue_segment_bytes=2000,
    index_slots=4,
    index_entries=6,
)
SHAPE: Final = Shape(1024, 2000, 4, 6, _CONFIG.delay_levels_ms)
MESSAGES: Final = 12


def stopped_store(numbers: range = range(0)) -> tuple[dict[str, bytes], Watch]:
    """Store messages, examine the copies with these numbers, and return the files and what was found."""
    loop, disk = SimulatedLoop(), SimulatedDisk()
    watch = Watch(lambda: 0, is_exact=True)

    async def main() -> None:
        runtime = simulated(loop, SimulatedNetwork(), disk=disk)
        store = MessageStore("store", _CONFIG, runtime)
        store.load()
        await store.start()
        for number in range(MESSAGES):
            properties = {"UNIQ_KEY": f"m{number}", "KEYS": "k ü", "TAGS": "AB"[number % 2]}
            await store.put(Message("T", b"body" * number, properties, queue_id=number % 3 % 2))
        write_sealed(disk, "store/config/table.json", b'{"a":1}')
        copies = RecoveredCopies(disk, "store", _CONFIG, runtime, watch)
        for number in numbers:
            await copies.examine(number)
        await store.stop()

    run_simulated(main(), loop)
    return {path.removeprefix("store/"): disk.written(path) for path in disk.files("store")}, watch
