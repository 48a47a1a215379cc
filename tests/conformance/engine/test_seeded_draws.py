"""A seed gives the same run, whatever other modules are loaded."""

import importlib.util
import sys
from contextlib import nullcontext
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from mqproof.conformance.engine.seeded_draws import repeatable


def drawn() -> list[int]:
    numbers: list[int] = []

    @hypothesis.settings(max_examples=300, database=None, phases=(hypothesis.Phase.generate,), deadline=None)
    @hypothesis.seed(7)
    @hypothesis.given(st.integers())
    def draw(number: int) -> None:
        numbers.append(number)

    draw()
    return numbers


@pytest.mark.parametrize("guarded", [True, False])
def test_loading_a_module_changes_no_draw(
    guarded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `repeatable`, loading a module would change the draws of a seed."""
    guard = repeatable if guarded else nullcontext
    with guard():
        before = drawn()
    name = f"literals_{guarded}"
    source = tmp_path / f"{name}.py"
    source.write_text("\n".join(f"x{n} = {10_000_019 * (n + 1)}" for n in range(200)))
    spec = importlib.util.spec_from_file_location(name, source)
    assert spec is not None
    monkeypatch.setitem(sys.modules, name, importlib.util.module_from_spec(spec))
    with guard():
        after = drawn()
    assert (before == after) is guarded
