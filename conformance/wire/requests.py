"""Builds requests from an operation's table."""

from mqproof.conformance.wire.model import Operation, Request


def valid(operation: Operation, body: str | bytes | None = None, **fields: str | None) -> Request:
    """Return the operation's valid request with changed fields and, optionally, another body.

    Fields that are None are omitted.
    """
    given = {field.name: field.value for field in operation.fields} | fields
    present = {name: value for name, value in given.items() if value is not None}
    return Request(operation.code, present, operation.body if body is None else body)
