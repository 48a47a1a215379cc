"""tools.yml: the account with which tools and brokers sign requests.

See docs/reference/protocol/access-control.md, "Accounts".
"""

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
    """Return the credentials in the text of the file. Raises ConfigError, with a one-line message.

    `where` is the file's name for messages.
    """
    try:
        loaded: Any = yaml.load(text, Loader=yaml.BaseLoader)  # creates only text, lists and tables
        file = msgspec.convert(loaded, _File)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{where}: {' '.join(str(error).split())}") from None
    return Credentials(file.access_key, file.secret_key, file.security_token)
