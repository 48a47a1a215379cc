"""The page of the public Python API, from the `__all__` of the public modules."""

import importlib
import inspect
from collections.abc import Iterator
from typing import Any, Final

from docs_site.markdown import code

MODULES: Final = (
    "mqproof.client",
    "mqproof.testing",
    "mqproof.integrations",
    "mqproof.spec.tlc",
    "mqproof.conformance.adapters",
)
"""The public modules. `mqproof` itself exports names of `mqproof.client`."""

_HEAD: Final = """# The Python API

These modules are public and stable: {modules}. A name that is not on this page is internal and may
change in any release. The page is generated from the docstrings when the site is built.

`mqproof` itself exports the names that most applications need: {names}.
"""


def page() -> str:
    """Return the page as Markdown, with a directive of mkdocstrings for each name."""
    own = [name for name in importlib.import_module("mqproof").__all__ if name != "__version__"]
    head = _HEAD.format(modules=", ".join(map(code, ("mqproof", *MODULES))), names=", ".join(map(code, own)))
    return "\n".join([head, *(line for name in MODULES for line in _chapter(name))])


def _chapter(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    yield f"## {name}\n"
    yield f"{inspect.cleandoc(module.__doc__ or '').splitlines()[0]}\n"
    for exported in module.__all__:
        yield _entry(exported, getattr(module, exported))


def _entry(name: str, value: Any) -> str:
    defined = getattr(value, "__module__", "") if hasattr(value, "__qualname__") else ""
    if not defined.startswith("mqproof."):
        return f"### {name}\n\nA type alias: {code(str(value))}.\n"
    block = f"::: {defined}.{value.__qualname__}\n"
    if value.__qualname__ != name:
        block += f"    options:\n      heading: {name}\n"
    return block
