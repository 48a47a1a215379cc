"""The SQL92 filter of a pull or a client check, or the reason why it is refused.

See docs/reference/protocol/filters.md, "Filter data".
"""

from collections.abc import Callable

from mqproof.impl.broker.services import Services
from mqproof.impl.broker.state.consumer_filters import SQL92
from mqproof.impl.filtering.sql import Filter, compiled
from mqproof.impl.filtering.tokens import ExpressionError
from mqproof.impl.remoting.codes import ResponseCode
from mqproof.impl.remoting.headers import PullRequest
from mqproof.impl.remoting.message import RETRY_PREFIX
from mqproof.impl.remoting.request_handler import RefusedError
from mqproof.impl.store.files import record

Selection = Callable[[bytes], bool]
"""Whether a record is selected, which was compared with its entry."""


def require_filter_type(expression_type: str | None) -> bool:
    """Return whether the type is SQL92. Refuse a type that is neither SQL92 nor TAG."""
    kind = expression_type or "TAG"
    if kind not in ("TAG", SQL92):
        raise RefusedError(
            ResponseCode.SYSTEM_ERROR, f"filter type {kind} is not supported, TAG or SQL92 expected"
        )
    return kind == SQL92


def require_filter(services: Services, expression: str | None) -> Filter:
    """Return the compiled expression; refuse any while they are not allowed, and one that is invalid."""
    if not services.config.property_filter:
        remark = "the broker does not filter by SQL92: its enablePropertyFilter is false"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    try:
        return compiled(expression or "")
    except ExpressionError as error:
        raise RefusedError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"SQL92 expression: {error}") from None


def registered_expression(services: Services, header: PullRequest) -> str:
    """Return the expression that heartbeats of the group registered for the topic."""
    data = services.filters.get(header.topic, header.consumer_group)
    if data is None:
        remark = f"group {header.consumer_group} has no SQL92 expression for topic {header.topic}"
        raise RefusedError(ResponseCode.FILTER_DATA_NOT_EXIST, remark)
    if data.client_version < header.sub_version:
        remark = f"expression version {data.client_version}, the request has {header.sub_version}"
        raise RefusedError(ResponseCode.FILTER_DATA_NOT_LATEST, remark)
    return data.expression


def selection(services: Services, topic: str, expression: str | None) -> Selection | None:
    """Return which records of the topic an expression selects; None for all.

    A group's retry topic is not filtered: its messages were selected before.
    """
    found = require_filter(services, expression)
    if topic.startswith(RETRY_PREFIX):
        return None

    markers = [record.property_marker(name) for name in found.names]
    return lambda data: found.matches_values(record.property_values(data, markers))
