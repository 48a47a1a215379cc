"""Goal: the page of the Python API has every public name, and each has a docstring."""

import importlib
import inspect
import re

from docs_site import api


def test_every_public_name_is_on_the_page() -> None:
    page = api.page()
    for module in api.MODULES:
        for name in importlib.import_module(module).__all__:
            found = re.search(rf"(?m)^(::: mqproof\.\S*\.{name}|### {name}|      heading: {name})$", page)
            assert found, f"{module}.{name}"


def test_the_package_mqproof_exports_only_names_of_the_client() -> None:
    client = importlib.import_module("mqproof.client").__all__
    assert set(importlib.import_module("mqproof").__all__) - {"__version__"} <= set(client)


def test_every_public_class_and_function_has_a_docstring() -> None:
    for module in map(importlib.import_module, api.MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                docstring = value.__doc__ or ""
                # A dataclass without a docstring gets its signature as docstring.
                assert docstring, f"{module.__name__}.{name}"
                assert not docstring.startswith(f"{name}("), f"{module.__name__}.{name}"
