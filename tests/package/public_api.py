"""Describes the public API as text: each public name with its signature, one a line.

    python -m tests.package.public_api

writes `public_api.txt` again. Commit the difference after you understood each line of it.
"""

import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MODULES: Final = (
    "mqproof",
    "mqproof.client",
    "mqproof.testing",
    "mqproof.integrations",
    "mqproof.spec.tlc",
    "mqproof.conformance.adapters",
)
_MODULE: Final = re.compile(
    r"\b(?:mqproof|collections|concurrent|pathlib|asyncio|threading)\.(?:[a-z_]\w*\.)*"
)
FILE: Final = Path(__file__).with_name("public_api.txt")


def describe() -> str:
    """Return the public names of all modules, with their signatures."""
    return "\n".join(line for module in MODULES for line in _module(module)) + "\n"


def _module(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    yield f"# {name}"
    for public in sorted(module.__all__):
        value = getattr(module, public)
        if public == "__version__":
            yield "__version__: str"
        elif name == "mqproof":
            yield f"{public} is mqproof.client.{public}"
        elif inspect.isclass(value):
            yield from _class(public, value)
        elif inspect.isfunction(value):
            yield f"def {public}{_signature(value)}"
        else:
            yield f"{public} = {_plain(repr(value))}"
    yield ""


def _class(name: str, value: type) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
    yield f"class {name}({bases})"
    if issubclass(value, enum.Enum):
        yield from (f"    {member.name} = {member.value!r}" for member in value)
        return
    if "__init__" in vars(value) or not issubclass(value, Exception):
        yield f"    {_signature(value)}"
    for member, found in sorted(vars(value).items()):
        if member.startswith("_"):
            continue
        if isinstance(found, property):
            yield f"    property {member}{_signature(found.fget)}"
        elif inspect.isfunction(found):
            word = "async def" if inspect.iscoroutinefunction(found) else "def"
            yield f"    {word} {member}{_signature(found)}"


def _signature(value: object) -> str:
    assert callable(value)
    return _plain(str(inspect.signature(value)))


def _plain(text: str) -> str:
    """Remove addresses, and shorten types to their last name, because their module does not matter."""
    return _MODULE.sub("", re.sub(r" at 0x[0-9a-f]+", "", text))


if __name__ == "__main__":
    FILE.write_text(describe(), encoding="utf-8")
    print(f"{FILE} written")
