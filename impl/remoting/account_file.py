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


def problem_of(error: Exception) -> str:
    """Return what is wrong with a file of accounts, in one line.

    The text of a YAML error quotes the file, and that line may have a secret.
    """
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}: not valid YAML"
    return " ".join(str(error).split())


def parse(text: str, where: str) -> Credentials:
    """Return the credentials in the text of the file. Raises ConfigError, with a one-line message.

    `where` is the file's name for messages.
    """
    try:
        loaded: Any = yaml.load(text, Loader=yaml.BaseLoader)  # creates only text, lists and tables
        file = msgspec.convert(loaded, _File)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{where}: {problem_of(error)}") from None
    return Credentials(file.access_key, file.secret_key, file.security_token)
