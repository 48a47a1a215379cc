"""The paths in a store directory (docs/reference/protocol/storing.md, "Store directory")."""

from dataclasses import dataclass

from mqproof.impl.runtime.disk import Disk, parent, write_durably


@dataclass(frozen=True, slots=True)
class Layout:
    directory: str

    @property
    def commit_log(self) -> str:
        return f"{self.directory}/commitlog"

    @property
    def consume_queues(self) -> str:
        return f"{self.directory}/consumequeue"

    @property
    def index(self) -> str:
        return f"{self.directory}/index"

    @property
    def checkpoint(self) -> str:
        return f"{self.directory}/checkpoint"

    @property
    def abort(self) -> str:
        """A file that exists while the store runs; at load it means that the last exit was not clean."""
        return f"{self.directory}/abort"

    @property
    def lock(self) -> str:
        return f"{self.directory}/lock"

    @property
    def deleted_topics(self) -> str:
        return f"{self.config}/deletedTopics.json"

    @property
    def config(self) -> str:
        """The directory of the broker's JSON files."""
        return f"{self.directory}/config"


def mark_running(disk: Disk, layout: Layout) -> None:
    """Write the abort file durably: from then on an exit without `mark_clean` is a crash."""
    write_durably(disk, layout.abort, b"")


def mark_clean(disk: Disk, layout: Layout) -> None:
    """Remove the abort file, as the very last step of a clean exit."""
    if disk.exists(layout.abort):
        disk.remove(layout.abort)
        disk.sync_directory(parent(layout.abort))
