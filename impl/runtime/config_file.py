"""The properties file of a server, which keeps remotely changed settings across restarts.

See docs/reference/protocol/administration.md, "Administration of a broker".
"""

import asyncio

from mqproof.impl.runtime.disk import read_whole, write_durably
from mqproof.impl.runtime.properties import with_values
from mqproof.impl.runtime.runtime import Runtime


class ConfigFile:
    """The file at `path`; without a file, changes last until the next start.

    A change must hold the lock `changing` until it takes effect.
    """

    def __init__(self, path: str, runtime: Runtime) -> None:
        self._path = path
        self._runtime = runtime
        self.changing = asyncio.Lock()

    async def keep(self, before: str, after: str) -> None:
        """Write the differences between two configurations, given as `key=value` lines, to the file.

        The other lines of the file stay as they are.

        Raises:
            OSError, ConfigError: the file cannot be read or written; it is unchanged.
        """
        old = set(before.splitlines())
        changes = dict(line.split("=", 1) for line in after.splitlines() if line not in old)
        if self._path and changes:
            await self._runtime.offload(lambda: self._write(changes))

    def _write(self, changes: dict[str, str]) -> None:
        disk = self._runtime.disk
        text = read_whole(disk, self._path).decode(errors="surrogateescape")
        changed = with_values(text, changes)
        write_durably(disk, self._path, changed.encode(errors="surrogateescape"))
