"""Groups of options: a dataclass whose fields are options, taken by a command as one argument."""

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any, get_type_hints


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each dataclass parameter of a command by the fields of that dataclass, for typer to read.

    Each field needs an Annotated type with a typer.Option, and a default, as a parameter would.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        kind = hints[parameter.name]
        if is_dataclass(kind):
            groups[parameter.name] = kind
            parameters += _of_group(kind)
        else:
            parameters.append(parameter.replace(annotation=kind, kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def grouped(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    grouped.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    grouped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return grouped


def _of_group(kind: Any) -> list[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]
