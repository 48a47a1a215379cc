"""Checks of values that applications pass. Each raises TypeError or ValueError with the name of the value."""

import re
from typing import Any, Final

from mqproof.impl.remoting.topic_names import name_problem

_GROUP_NAME: Final = re.compile(r"[%|a-zA-Z0-9_-]{1,120}")


def require_function(name: str, value: object) -> None:
    """Refuse a value that cannot be called."""
    if not callable(value):
        raise TypeError(f"{name} is {value!r}, a function expected")


def require_whole(name: str, value: object, least: int = 0) -> None:
    """Refuse a value that is not a whole number of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, a whole number expected")
    if value < least:
        raise ValueError(f"{name} is {value}, at least {least} expected")


def require_time_ms(name: str, value: object) -> None:
    """Refuse a time that is not in milliseconds since the epoch."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(
            f"{name} is {value!r}, milliseconds since 1970 expected, such as "
            "int(datetime.now().timestamp() * 1000)"
        )
    if value < 0:
        raise ValueError(f"{name} is {value}, milliseconds since 1970 expected")


def require_kind(name: str, value: object, kind: type[Any]) -> None:
    """Refuse a value of another type."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {value!r}, a value of the type {kind.__name__} expected")


def require_methods(name: str, value: object, methods: tuple[str, ...]) -> None:
    """Refuse an object that lacks one of the methods."""
    for method in methods:
        if not callable(getattr(value, method, None)):
            raise TypeError(f"{name} is {value!r}, an object with the method {method} expected")


def require_group(group: object) -> None:
    """Refuse a text that cannot be the name of a group."""
    if not isinstance(group, str):
        raise TypeError(f"the group is {group!r}, a text expected")
    if not _GROUP_NAME.fullmatch(group):
        raise ValueError(f"group {group!r}: 1 to 120 letters, digits or %|_- expected")


def require_topic(topic: object) -> None:
    """Refuse a text that cannot be the name of a topic."""
    if not isinstance(topic, str):
        raise TypeError(f"the topic is {topic!r}, a text expected")
    if problem := name_problem(topic):
        raise ValueError(problem)
