"""A target whose methods are requests to the process of an adapter, made from the protocol of any suite."""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, get_type_hints

from mqproof.conformance.adapters.python_class import members
from mqproof.conformance.adapters.stdio.adapter_process import BASIC, AdapterProcess, called
from mqproof.conformance.adapters.stdio.basic_operations import basic_class
from mqproof.conformance.adapters.stdio.wire_values import ValueMismatchError, from_json, to_json
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.suites.flush.target import RestartFailedError

_KINDS: Final[dict[str, type[Exception]]] = {"target": TargetError, "restart_failed": RestartFailedError}
"""Maps the kind of an error in an answer to the exception that a target raises."""


@contextmanager
def stdio_targets(name: str, suite: str, protocol: type[Any]) -> Iterator[Callable[[], Any]]:
    """Yield the factory of targets that all use one process of the adapter, which lives within the block.

    Raises:
        UnknownTargetError: the command cannot be started, or does not support the suite.
        AdapterFailedError: the adapter failed.
    """
    with AdapterProcess(name) as process:
        yield proxy_class(process, suite, protocol)


def proxy_class(process: AdapterProcess, suite: str, protocol: type[Any]) -> type[Any]:
    """Return a class with the members of the protocol, after the adapter was greeted for the suite."""
    declared, operations = process.hello(suite, constants_of(protocol))
    hint = get_type_hints(protocol.capabilities.fget)["return"]
    try:
        capabilities = from_json(declared, hint, "capabilities")
    except ValueMismatchError as error:
        raise process.failed(str(error)) from None
    if operations == BASIC:
        return basic_class(process, suite, capabilities)
    body: dict[str, Any] = {"name": process.name, "capabilities": capabilities}
    for member in members(protocol):
        if member not in body:
            body[member] = _member(process, protocol, member)
    return type("StdioTarget", (), body)


def constants_of(protocol: type[Any]) -> dict[str, Any]:
    """Return the numbers and names that the module of the protocol fixes, such as the number of queues."""
    return {
        name: to_json(value)
        for name, value in vars(sys.modules[protocol.__module__]).items()
        if name.isupper() and isinstance(value, (int, tuple))
    }


def _member(process: AdapterProcess, protocol: type[Any], name: str) -> Any:
    declared = getattr(protocol, name)
    function: Any = declared.fget if isinstance(declared, property) else declared
    signature = inspect.signature(function)
    result = get_type_hints(function).get("return")

    def method(self: object, *args: Any, **named: Any) -> Any:
        bound = signature.bind(self, *args, **named)
        bound.apply_defaults()
        arguments = {key: to_json(value) for key, value in list(bound.arguments.items())[1:]}
        return called(process, name, arguments, result, _KINDS)

    method.__name__ = name
    method.__signature__ = signature  # type: ignore[attr-defined]
    return property(method) if isinstance(declared, property) else method
