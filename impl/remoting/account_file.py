"""tools.yml: the account in whose name tools and brokers ask. See docs/protocol.md, "Access control"."""

from typing import Any

import msgspec
import yaml

from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.properties import ConfigError


class _File(msgspec.Struct, rename="camel"):
    access_key: str
    secret_key: str
    security_token: str | None = None


def parse(text: str, where: str) -> Credentials:
    """What the file says; `where` names it. Raises ConfigError, one line."""
    try:
        loaded: Any = yaml.load(text, Loader=yaml.BaseLoader)  # makes text, lists and tables only
        file = msgspec.convert(loaded, _File)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{where}: {' '.join(str(error).split())}") from None
    return Credentials(file.access_key, file.secret_key, file.security_token)
