"""The settings of a client from a file or the environment.

A file has RocketMQ's form, `key=value` lines. docs/how-to/client.md lists the keys.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.properties import ConfigError, parse

NAME_SERVERS_VARIABLE: Final = "NAMESRV_ADDR"

_KEYS: Final = {
    "namesrvAddr": "name_servers",
    "instanceName": "instance",
    "unitName": "unit",
    "clientId": "client_id",
    "tlsConfigFile": "tls",
    "accessKey": "access_key",
    "secretKey": "secret_key",
    "securityToken": "security_token",
}


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """What `connect` needs. A value that is None is not set."""

    name_servers: str | None = None
    instance: str | None = None
    unit: str | None = None
    client_id: str | None = None
    tls: str | None = None
    access_key: str | None = None
    secret_key: str | None = None
    security_token: str | None = None

    def __repr__(self) -> str:
        return f"ClientSettings({self.name_servers})"  # secrets must not appear in logs

    @classmethod
    def from_file(cls, path: str | Path) -> "ClientSettings":
        """Read a file.

        Raises:
            ConfigError: a line is not a setting, a key is not known, or the file is not UTF-8.
            OSError: the file cannot be read.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from None
        found = {}
        for key, entry in parse(text, str(path)).items():
            if key not in _KEYS:
                raise ConfigError(f"{entry.where}: {key} is not known, one of {', '.join(_KEYS)} expected")
            found[_KEYS[key]] = entry.value
        return cls(**found)

    def or_environment(self) -> "ClientSettings":
        """Return the settings, with the name servers of NAMESRV_ADDR if none are set."""
        return replace(self, name_servers=self.name_servers or os.environ.get(NAME_SERVERS_VARIABLE) or None)

    @property
    def credentials(self) -> Credentials | None:
        """The account, if the settings name one. Raises ConfigError if they have only a part of it."""
        if not (self.access_key or self.secret_key or self.security_token):
            return None
        if not self.access_key or not self.secret_key:
            raise ConfigError(
                "accessKey and secretKey are needed together, also with securityToken, or none of them"
            )
        return Credentials(self.access_key, self.secret_key, self.security_token)
