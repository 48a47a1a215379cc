"""Tests what a body means that lacks members (docs/reference/protocol/framing.md, "JSON bodies").

A member that a peer leaves out counts as zero, empty or absent; the exceptions are listed here.
"""

from collections.abc import Iterator
from inspect import isclass
from types import ModuleType
from typing import Any, Final

import msgspec
import pytest

from mqproof.impl.remoting import bodies, headers

_OTHERS: Final[dict[str, dict[str, object]]] = {
    "TopicConfig": {
        "perm": 6, "read_queue_nums": 16, "write_queue_nums": 16, "topic_filter_type": "SINGLE_TAG",
    },
    "SubscriptionGroup": {
        "consume_broadcast_enable": True, "consume_enable": True, "consume_from_min_enable": True,
        "notify_consumer_ids_changed_enable": True, "retry_max_times": 16, "retry_queue_nums": 1,
        "which_broker_when_consume_slowly": 1,
    },
    "RequestMode": {"mode": "PULL"},
    "HaStatus": {"ha_client_runtime_info": bodies.HaClient()},
    "Subscription": {"sub_string": "*", "expression_type": "TAG"},
    "ConsumerData": {
        "consume_from_where": "CONSUME_FROM_LAST_OFFSET", "consume_type": "CONSUME_PASSIVELY",
        "message_model": "CLUSTERING",
    },
    "ConsumedDirectly": {"auto_commit": True, "consume_result": "CR_SUCCESS"},
    "UpdateTopicRequest": {"topic_filter_type": "SINGLE_TAG"},
}  # fmt: skip
"""The members with another default, by the class of the body or header."""


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _optional(module: ModuleType) -> Iterator[tuple[str, str, object]]:
    for kind in vars(module).values():
        if isclass(kind) and issubclass(kind, msgspec.Struct) and kind.__module__ == module.__name__:
            for field in msgspec.structs.fields(kind):
                if not field.required:
                    yield kind.__name__, field.name, _default(field)


@pytest.mark.parametrize("module", [bodies, headers])
def test_a_member_that_is_left_out_counts_as_zero_or_as_its_documented_default(module: ModuleType) -> None:
    found: dict[str, dict[str, object]] = {}
    for kind, name, default in _optional(module):
        if default and default is not msgspec.UNSET:
            found.setdefault(kind, {})[name] = default
    assert found == {kind: members for kind, members in _OTHERS.items() if hasattr(module, kind)}
