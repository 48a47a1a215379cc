"""A changed module is imported instead of the original, in a new process only."""

import subprocess
import sys

import pytest

import mqproof.impl.broker.delayed
from mqproof.conformance.mutation.loading import LoadedError, install, source_of
from mqproof.conformance.mutation.operators import mutants

_MODULE = "mqproof.impl.remoting.codes"
_PROGRAM = """
from mqproof.conformance.mutation.loading import install
install({module!r}, {number})
from mqproof.impl.remoting.codes import RequestCode
print(RequestCode.SEND_MESSAGE.value)
"""


def test_changed_module_is_imported() -> None:
    source = source_of(_MODULE).read_text(encoding="utf-8")
    send = source[: source.index("SEND_MESSAGE = 10")].count("\n") + 1
    number = next(m.number for m in mutants(_MODULE, source) if (m.line, m.after) == (send, "9"))
    program = _PROGRAM.format(module=_MODULE, number=number)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "9"


def test_imported_module_is_refused() -> None:
    with pytest.raises(LoadedError, match="was imported before"):
        install(mqproof.impl.broker.delayed.__name__, 0)


def test_unknown_module_is_refused() -> None:
    with pytest.raises(ModuleNotFoundError, match="no module named"):
        source_of("mqproof.impl.nothing")
