"""Goal: the matrix shows what is checked, what cannot be, what is open, and checks without a mutant."""

from mqproof.spec.catalogue import parse
from mqproof.spec.coverage import as_json, reasons, table, totals

CATALOGUE = """
[[invariant]]
id = "T-1"
name = "Kept"
statement = "It is kept."
source = "Here"
kind = "safety"
scope = "always"
checks.tla = "M!Kept"
mutants.tla = ["Loses"]
checks.reference = "m.kept"
why.fuzz = "nothing to fuzz"
"""


def test_each_cell_says_what_checks_it_or_why_nothing_does() -> None:
    invariants = tuple(parse(CATALOGUE).values())
    assert table(invariants).rows == (
        ("T-1 Kept", "M!Kept (1 mutant)", "m.kept (0 mutants)", "open", "n/a", "open"),
    )
    assert reasons(invariants) == ("n/a T-1 fuzz: nothing to fuzz",)
    assert totals(invariants) == {"checked": 2, "n/a": 1, "open": 2, "checked without a mutant": 1}
    assert as_json(invariants)["invariants"][0]["cells"]["tla"] == {
        "state": "checked",
        "by": "M!Kept",
        "why": None,
        "mutants": ["Loses"],
    }
