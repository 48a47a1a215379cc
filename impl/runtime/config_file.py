"""The properties file that a server was started with: what is changed from afar is there after a restart too.

See docs/protocol.md, "Administration of a broker".
"""

import asyncio

from mqproof.impl.runtime.disk import read_whole, write_durably
from mqproof.impl.runtime.properties import with_values
from mqproof.impl.runtime.runtime import Runtime


class ConfigFile:
    """The file at `path`; without one, what is changed lasts until the next start.

    Whoever changes something holds `changing` until it counts.
    """

    def __init__(self, path: str, runtime: Runtime) -> None:
        self._path = path
        self._runtime = runtime
        self.changing = asyncio.Lock()

    async def keep(self, before: str, after: str) -> None:
        """Write down what differs between two configurations as they are shown, `key=value` lines. The
        file's other lines stay as they are.

        Raises:
            OSError, ConfigError: the file cannot be read or written; it is as it was.
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
