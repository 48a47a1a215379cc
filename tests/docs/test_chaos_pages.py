"""Goal: the pages about the chaos proxy are correct. Method: compare the tables, and execute the examples.

`python -m tests.docs.test_chaos_pages` writes the tables of the faults again.
"""

import re
from typing import Any, Final

from mqproof.impl.chaos.fault_table import FAULTS, FaultKind
from mqproof.impl.chaos.plan import parse
from mqproof.testing import ThreadedBroker, ThreadedChaos
from tests.docs.console import ROOT

REFERENCE: Final = ROOT / "docs" / "reference" / "chaos.md"
GUIDE: Final = ROOT / "docs" / "how-to" / "chaos.md"


def rows(*, lawful: bool) -> str:
    """Return the table of the lawful faults, or of the others."""
    ids = "permitted by" if lawful else "breaks"
    head = f"| fault | at | effect | {ids} | probability |\n|---|---|---|---|---|\n"
    return head + "".join(_row(fault) for fault in FAULTS.values() if fault.is_lawful is lawful)


def _row(fault: FaultKind) -> str:
    often = f"{fault.probability:g}"
    if fault.spacing:
        often += f", at most every {fault.spacing + 1}"
    if fault.delay_ms != (0, 0):
        often += f"; {fault.delay_ms[0]} to {fault.delay_ms[1]} ms"
    ids = ", ".join(fault.permitted_by or fault.breaks)
    return f"| `{fault.name}` | {fault.point} | {fault.effect} | {ids} | {often} |\n"


def with_tables(page: str) -> str:
    """Return the page with both tables of faults replaced."""
    lawful, unlawful = rows(lawful=True), rows(lawful=False)
    page = re.sub(
        r"(?m)^\| fault \| at \| effect \| permitted by (?:.*\n\|)*.*\n|^FAULTS\n", lambda _: lawful, page
    )
    return re.sub(
        r"(?m)^\| fault \| at \| effect \| breaks (?:.*\n\|)*.*\n|^UNLAWFUL\n", lambda _: unlawful, page
    )


def test_the_tables_have_all_faults() -> None:
    page = REFERENCE.read_text(encoding="utf-8")
    assert page == with_tables(page)
    assert rows(lawful=True) in page
    assert rows(lawful=False) in page


def test_the_plans_of_both_pages_are_valid() -> None:
    for path in (REFERENCE, GUIDE):
        plans = re.findall(r"```toml\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
        assert plans
        for text in plans:
            assert parse(text, path.name).faults


def test_the_guide_names_only_faults_that_exist() -> None:
    page = GUIDE.read_text(encoding="utf-8")
    names = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", page)) - {"rocketmq_chaos"}
    assert names <= FAULTS.keys()


def test_the_examples_run() -> None:
    program, test = re.findall(r"```python.*?\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    exec(program, {})
    names: dict[str, Any] = {}
    exec(test, names)
    (mark,) = names["test_orders"].pytestmark
    with ThreadedBroker() as broker, ThreadedChaos(broker.name_server, *mark.args, **mark.kwargs) as chaos:
        names["test_orders"](chaos, broker)


if __name__ == "__main__":
    REFERENCE.write_text(with_tables(REFERENCE.read_text(encoding="utf-8")), encoding="utf-8")
