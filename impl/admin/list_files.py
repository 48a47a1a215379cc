"""Files with a list of topics or of groups, in JSON: those of mqadmin, and those of `exportMetadata`."""

from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from mqproof.impl.remoting.bodies import LIST_MAX, SubscriptionGroup, TopicConfig

_BYTES_MAX: Final = 4 << 20
"""The limit on a file, which is that of the request."""

_ListedT = TypeVar("_ListedT", TopicConfig, SubscriptionGroup)


def read_topics(path: str) -> list[TopicConfig]:
    """Return the topics in a file. Raises ValueError or OSError when it has none, with the reason."""
    return _read(path, TopicConfig, "topicConfigTable", "topicName")


def read_groups(path: str) -> list[SubscriptionGroup]:
    """Return the consumer groups in a file. Raises ValueError or OSError when it has none."""
    return _read(path, SubscriptionGroup, "subscriptionGroupTable", "groupName")


def _read(path: str, kind: type[_ListedT], table: str, name: str) -> list[_ListedT]:
    with Path(path).open("rb") as file:
        data = file.read(_BYTES_MAX + 1)
    if len(data) > _BYTES_MAX:
        raise ValueError(f"{path} has more than {_BYTES_MAX} bytes")
    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    listed = content
    if isinstance(content, dict):
        exported = content.get(table)
        if not isinstance(exported, dict):
            raise ValueError(f"{path}: a list expected, or an object with {table}")
        listed = list(exported.values())
    if not isinstance(listed, list) or not 0 < len(listed) <= LIST_MAX:
        raise ValueError(f"{path}: a list of 1 to {LIST_MAX} objects expected")
    return [_listed(path, number, each, kind, name) for number, each in enumerate(listed, 1)]


def _listed(path: str, number: int, value: Any, kind: type[_ListedT], name: str) -> _ListedT:
    where = f"{path}: object {number}"
    if not isinstance(value, dict) or not value.get(name):
        raise ValueError(f"{where} has no {name}")
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    if unknown := sorted(set(value) - known):
        raise ValueError(f"{where} has the unknown member {unknown[0]}")
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None
