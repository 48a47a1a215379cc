"""A change inside functions replaces their code; any other one is imported, in a new process only."""

import subprocess
import sys

import pytest

import mqproof.impl.broker.delayed
from mqproof.conformance.mutation.loading import (
    LoadedError,
    are_imported,
    changed_functions,
    install,
    replace_functions,
    source_of,
)

_MODULE = "mqproof.impl.remoting.codes"
_PROGRAM = """
from mqproof.conformance.mutation.loading import install
install({{{module!r}: compile({source!r}, "codes.py", "exec")}})
from mqproof.impl.remoting.codes import RequestCode
print(RequestCode.SEND_MESSAGE.value)
"""


def test_changed_module_is_imported() -> None:
    source = source_of(_MODULE).read_text(encoding="utf-8").replace("SEND_MESSAGE = 10", "SEND_MESSAGE = 9")
    program = _PROGRAM.format(module=_MODULE, source=source)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "9"


def test_imported_module_is_refused() -> None:
    with pytest.raises(LoadedError, match="was imported before"):
        install({mqproof.impl.broker.delayed.__name__: compile("", "delayed.py", "exec")})


def test_unknown_module_is_refused() -> None:
    with pytest.raises(ModuleNotFoundError, match="no module named"):
        source_of("mqproof.impl.nothing")


_SOURCE = """
LIMIT = 3
class A:
    field = 1
    def method(self, x=2):
        return [y for y in range(x)]
def closure(x):
    def inner():
        return x
    return inner
"""


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ("return [y", "return [y + 1", {"method"}),
        ("        return x", "        return -x", {"closure"}),
        ("LIMIT = 3", "LIMIT = 4", None),
        ("field = 1", "field = 0", None),
        ("x=2", "x=3", None),
        ("LIMIT = 3", "\nLIMIT = 3", set()),
    ],
)
def test_only_a_change_inside_functions_needs_no_import(
    before: str, after: str, names: set[str] | None
) -> None:
    found = changed_functions(
        compile(_SOURCE, "a.py", "exec"), compile(_SOURCE.replace(before, after), "a.py", "exec")
    )
    assert (None if found is None else {code.co_name for code in found}) == names


def test_every_reference_to_a_replaced_function_has_the_new_code() -> None:
    original, changed = (compile(text, "b.py", "exec") for text in (_SOURCE, _SOURCE.replace("[y", "[-y")))
    names: dict[str, type] = {}
    exec(original, names)
    method = names["A"]().method
    functions = changed_functions(original, changed)
    assert functions
    assert are_imported(functions)
    replace_functions(functions)
    assert method(3) == [0, -1, -2]
    assert not are_imported(functions)
