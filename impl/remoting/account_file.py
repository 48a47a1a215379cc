"""tools.yml: the account with which tools and brokers sign requests.

See docs/reference/protocol/access-control.md, "Accounts".
"""

from typing import Any

import msgspec

from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.properties import ConfigError


class _File(msgspec.Struct, rename="camel"):
    access_key: str
    secret_key: str
    security_token: str | None = None


def read_yaml(text: str) -> Any:
    """Return the lists and tables of a YAML text; every scalar is text, so a key of digits is not a number.

    Raises ValueError. Its message has no part of the text, which may have a secret.
    """
    import yaml  # only servers and clients that use accounts load it

    try:
        return yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        raise ValueError(f"{place}not valid YAML") from None
    except yaml.YAMLError as error:
        raise ValueError(f"{error}") from None


def problem_of(error: ValueError) -> str:
    """Return what is wrong with a file of accounts, in one line."""
    return " ".join(str(error).split())


def parse(text: str, where: str) -> Credentials:
    """Return the credentials in the text of the file. Raises ConfigError, with a one-line message.

    `where` is the file's name for messages.
    """
    try:
        file = msgspec.convert(read_yaml(text), _File)
    except ValueError as error:
        raise ConfigError(f"{where}: {problem_of(error)}") from None
    return Credentials(file.access_key, file.secret_key, file.security_token)
