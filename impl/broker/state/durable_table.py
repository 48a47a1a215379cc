"""A table of named settings with a data version, in memory and in one JSON file of RocketMQ's.

A change by `change` takes effect after it is on disk. A change by `add_now` takes effect at once, and is on
disk after the next `persist` or `change`. See docs/reference/protocol/storing.md, "Configuration files".
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from mqproof.impl.broker.state.unwritten import Unwritten
from mqproof.impl.remoting.bodies import DataVersion
from mqproof.impl.remoting.java_json import BodyError, read, write
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.disk import Disk
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.store.damage import DamageReport
from mqproof.impl.store.files.sealed_file import read_sealed, write_sealed

Value = TypeVar("Value")
File = TypeVar("File")


def read_config(
    disk: Disk, path: str, kind: type[File], damage: DamageReport | None = None, *, required: bool = False
) -> File | None:
    """Return the content of a configuration file; None when neither it nor its `.bak` exists.

    The `.bak` is used when the file is missing, empty, damaged or older.

    Raises:
        StoreError: a file exists or is required, but neither of the two can be used.
        OSError: they cannot be read.
    """

    def parse(data: bytes) -> File:
        try:
            return read(kind, data)
        except BodyError as error:
            raise ValueError(str(error)) from None

    return read_sealed(disk, path, parse, damage, required=required)


class _Batch(Generic[Value]):
    """Changes that are written together."""

    def __init__(self) -> None:
        self.values: dict[str, Value | None] = {}
        self.error: OSError | None = OSError("cancelled before it was written")


class DurableTable(Generic[Value]):
    """A table and its file. `to_file` makes the file's content from a version and values."""

    def __init__(
        self, path: str, runtime: Runtime, to_file: Callable[[DataVersion, dict[str, Value]], object]
    ) -> None:
        self._path = path
        self._runtime = runtime
        self._to_file = to_file
        self._values: dict[str, Value] = {}
        self.version = DataVersion(0, now_ms(runtime.clock))
        self._changing = asyncio.Lock()
        self._next: _Batch[Value] = _Batch()
        self._written: _Batch[Value] = _Batch()
        """The changes that are being written."""
        self._unwritten = Unwritten()

    def __len__(self) -> int:
        """Return the number of values, plus the number of changes that are not written yet."""
        return len(self._values) + len(self._next.values) + len(self._written.values)

    def load(self, version: DataVersion, values: Mapping[str, Value]) -> None:
        """Set the version and values read from the file."""
        self.version = version
        self._values = dict(values)

    def write_at_next_persist(self) -> None:
        """Let the next `persist` write the file, although nothing has changed."""
        self._unwritten.is_any = True

    def get(self, name: str) -> Value | None:
        return self._values.get(name)

    def values(self) -> dict[str, Value]:
        """Return a copy of all values."""
        return dict(self._values)

    def add_now(self, values: Mapping[str, Value]) -> None:
        """Add or replace values in memory."""
        if values:
            self._values.update(values)
            self.renew_version()

    async def replace(self, version: DataVersion, values: Mapping[str, Value]) -> None:
        """Replace the table by another broker's, including its version.

        Raises OSError when the file cannot be written; nothing has changed then.
        """
        async with self._changing:
            await self._write(version, dict(values))
            self.load(version, values)

    def renew_version(self) -> None:
        """Increase the version, so that readers with the earlier version consider the values changed."""
        self.version = self._next_version()
        self._unwritten.is_any = True

    async def change(self, values: Mapping[str, Value | None]) -> None:
        """Add and replace values, and remove those whose value is None.

        Changes that are requested while the file is being written are written together. Raises OSError when
        the file cannot be written; nothing has changed then.
        """
        batch = self._next
        batch.values.update(values)
        async with self._changing:
            if batch is self._next:
                self._next, self._written = _Batch(), batch
                try:
                    await self._write_batch(batch)
                finally:
                    self._written = _Batch()
        if batch.error is not None:
            raise batch.error

    async def _write_batch(self, batch: "_Batch[Value]") -> None:
        try:
            await self._write(self._next_version(), _changed(self._values, batch.values))
        except OSError as error:
            batch.error = error
        else:
            batch.error = None
            # Keep the values that `add_now` added meanwhile.
            self._values = _changed(self._values, batch.values)
            self.version = self._next_version()

    async def persist(self) -> None:
        """Write the file if memory has changes that it lacks. Raises OSError when that fails."""
        if self._unwritten.is_any:
            async with self._changing:
                await self._write(self.version, self._values)

    def persist_now(self) -> None:
        """Write the file like `persist`, in the caller's thread."""
        if self._unwritten.is_any:
            with self._unwritten.writing():
                write_sealed(self._runtime.disk, self._path, self._content(self.version, self._values))

    async def _write(self, version: DataVersion, values: dict[str, Value]) -> None:
        data = self._content(version, values)
        with self._unwritten.writing():
            await self._runtime.offload(lambda: write_sealed(self._runtime.disk, self._path, data))

    def _content(self, version: DataVersion, values: dict[str, Value]) -> bytes:
        return write(self._to_file(version, values), standard=True)

    def _next_version(self) -> DataVersion:
        return DataVersion(self.version.counter + 1, now_ms(self._runtime.clock))


def _changed(old: Mapping[str, Value], changes: Mapping[str, Value | None]) -> dict[str, Value]:
    future = {name: value for name, value in old.items() if name not in changes}
    future.update((name, value) for name, value in changes.items() if value is not None)
    return future
