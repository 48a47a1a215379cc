"""Requests made of an operation's table."""

from mqproof.conformance.wire.model import Operation, Request


def valid(operation: Operation, body: str | bytes | None = None, **fields: str | None) -> Request:
    """The operation's valid request with other fields, without those that are None, and with another body."""
    given = {field.name: field.value for field in operation.fields} | fields
    present = {name: value for name, value in given.items() if value is not None}
    return Request(operation.code, present, operation.body if body is None else body)
