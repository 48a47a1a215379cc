"""Key-value configuration: texts by namespace and key, in kvConfig.json.

See docs/reference/protocol/name-server.md, "Administration of a name server". A change is on disk before it
becomes visible. Each name server has its own configuration; they do not synchronise.
"""

import asyncio
from typing import Final

import msgspec

from mqproof.impl.remoting.java_json import BodyError, read, write
from mqproof.impl.runtime.disk import read_whole, write_durably
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.runtime.runtime import Runtime

ORDER_TOPICS: Final = "ORDER_TOPIC_CONFIG"
"""The namespace that maps an ordered topic to its queues per broker, as in `brokerA:4;brokerB:4`."""

ENTRIES_MAX: Final = 10_000
CHARACTERS_MAX: Final = 4 << 20
"""The maximum length of all namespaces, keys and values together."""


class KvFullError(Exception):
    """An entry would exceed a bound; nothing was changed."""


class _File(msgspec.Struct, rename="camel", frozen=True):
    config_table: dict[str, dict[str, str]] = {}


class KvConfig:
    """All namespaces, in memory and in the file at `path`. The first change creates the file."""

    def __init__(self, path: str, runtime: Runtime) -> None:
        self._path = path
        self._runtime = runtime
        self._spaces: dict[str, dict[str, str]] = {}
        self._changing = asyncio.Lock()

    def load(self) -> None:
        """Read the file, if there is one. Raises ConfigError, OSError."""
        if self._runtime.disk.exists(self._path):
            try:
                self._spaces = read(_File, read_whole(self._runtime.disk, self._path)).config_table
            except BodyError as error:
                raise ConfigError(f"{self._path}: {error}") from None

    def get(self, namespace: str, key: str) -> str | None:
        return self._spaces.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> dict[str, str] | None:
        """Return all entries of a namespace, or None when there are none."""
        return self._spaces.get(namespace)

    async def put(self, namespace: str, key: str, value: str) -> None:
        """Store an entry.

        Raises KvFullError, or OSError when the file cannot be written; then nothing changes.
        """
        async with self._changing:
            space = {**self._spaces.get(namespace, {}), key: value}
            await self._become({**self._spaces, namespace: space})

    async def delete(self, namespace: str, key: str) -> None:
        """Delete an entry, if it exists. Raises OSError as `put` does."""
        async with self._changing:
            space = {name: value for name, value in self._spaces.get(namespace, {}).items() if name != key}
            others = {name: values for name, values in self._spaces.items() if name != namespace}
            await self._become({**others, namespace: space} if space else others)

    async def _become(self, spaces: dict[str, dict[str, str]]) -> None:
        if spaces == self._spaces:
            return
        _check_bounds(spaces)
        data = write(_File(spaces))
        await self._runtime.offload(lambda: write_durably(self._runtime.disk, self._path, data))
        self._spaces = spaces


def _check_bounds(spaces: dict[str, dict[str, str]]) -> None:
    if sum(map(len, spaces.values())) > ENTRIES_MAX:
        raise KvFullError(f"more than {ENTRIES_MAX} entries of key-value configuration")
    names = sum(map(len, spaces))
    texts = sum(len(key) + len(value) for space in spaces.values() for key, value in space.items())
    if names + texts > CHARACTERS_MAX:
        raise KvFullError(f"more than {CHARACTERS_MAX} characters of key-value configuration")
