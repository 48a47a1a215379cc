"""Checks of values that applications pass. Each raises TypeError or ValueError with the name of the value."""


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
