"""plain_acl.yml: read again when the file changes, written when an administrator changes the rules.

See docs/reference/protocol/access-control.md, "Accounts".
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import msgspec

from mqproof.impl.access.acl import AclEntries, Rules, parse, rules
from mqproof.impl.remoting.bodies import DataVersion
from mqproof.impl.runtime.clock import now_ms
from mqproof.impl.runtime.disk import SECRET_MODE, read_whole, write_durably
from mqproof.impl.runtime.properties import ConfigError
from mqproof.impl.runtime.runtime import Runtime
from mqproof.impl.runtime.security.secret_files import warn_if_exposed

_log = logging.getLogger(__name__)

POLL_S: Final = 5.0


class AclFile:
    """The file at `path` and its content. An invalid file changes nothing."""

    def __init__(self, path: str, runtime: Runtime) -> None:
        self._path = path
        self._runtime = runtime
        self._changing = asyncio.Lock()
        self._content = b""
        self._complaint = ""
        self._entries, self.rules = parse("", path)
        self.version = DataVersion(0, now_ms(runtime.clock))

    @property
    def entries(self) -> AclEntries:
        """The entries in use. Do not change them."""
        return self._entries

    def load(self) -> None:
        """Read the file, and warn if other users can read it.

        Raises ConfigError or OSError; the rules then stay as they are.
        """
        warn_if_exposed(self._runtime.disk, self._path)
        self._take(read_whole(self._runtime.disk, self._path))

    async def poll(self) -> None:
        """Read the file if it has changed. An unusable file is logged once and changes nothing."""
        async with self._changing:
            try:
                content = read_whole(self._runtime.disk, self._path)
                if content != self._content:
                    self._take(content)
                self._complaint = ""
            except (ConfigError, OSError) as error:
                if str(error) != self._complaint:
                    self._complaint = str(error)
                    _log.error("the access rules are unchanged: %s", error)

    async def change(self, change: Callable[[AclEntries], AclEntries]) -> None:
        """Replace the file, and apply the new rules after the file is on disk.

        Raises:
            ValueError: the change is not possible. OSError: the file cannot be written. Nothing is changed
                then.
        """
        import yaml  # only a server that uses accounts loads it

        async with self._changing:
            entries = change(self._entries)
            new_rules = rules(entries)
            version = DataVersion(self.version.counter + 1, now_ms(self._runtime.clock))
            content = {**msgspec.to_builtins(entries), "dataVersion": [msgspec.to_builtins(version)]}
            data = yaml.safe_dump(content, allow_unicode=True, sort_keys=False).encode()
            await self._runtime.offload(
                lambda: write_durably(self._runtime.disk, self._path, data, SECRET_MODE)
            )
            self._become(data, entries, new_rules)

    def _take(self, content: bytes) -> None:
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise ConfigError(f"{self._path}: not UTF-8 text: {error}") from None
        self._become(content, *parse(text, self._path))

    def _become(self, content: bytes, entries: AclEntries, new_rules: Rules) -> None:
        self._content, self._entries, self.rules = content, entries, new_rules
        self.version = DataVersion(self.version.counter + 1, now_ms(self._runtime.clock))
