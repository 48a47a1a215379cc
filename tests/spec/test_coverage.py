"""Goal: the matrix shows checked, impossible and open checks, and checks without a mutant."""

from mqproof.spec.catalogue import catalogue, parse
from mqproof.spec.coverage import as_json, details, matrix, totals

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


def test_each_layer_of_an_invariant_shows_its_check_or_why_it_has_none() -> None:
    invariants = tuple(parse(CATALOGUE).values())
    assert matrix(invariants) == (
        "invariant  tla  reference  conformance  fuzz  audit",
        "T-1 Kept   ✓    ~          open         –     open",
    )
    assert details(invariants[0]) == (
        "T-1 Kept (safety)",
        "  It is kept.",
        "  tla          checked by M!Kept",
        "               mutants: Loses",
        "  reference    checked by m.kept",
        "               mutants: none",
        "  conformance  open",
        "  fuzz         n/a: nothing to fuzz",
        "  audit        open",
    )
    assert totals(invariants) == {"checked": 2, "n/a": 1, "open": 2, "checked without a mutant": 1}
    assert as_json(invariants)["invariants"][0]["cells"]["tla"] == {
        "state": "checked",
        "by": "M!Kept",
        "why": None,
        "mutants": ["Loses"],
    }


def test_the_coverage_matrix_fits_80_columns() -> None:
    invariants = tuple(catalogue().values())
    assert max(map(len, matrix(invariants))) <= 80
    assert max(len(line) for each in invariants for line in details(each)) <= 110  # dotted names do not break


def test_only_the_selected_layers_are_shown_and_counted() -> None:
    invariants = tuple(parse(CATALOGUE).values())
    assert matrix(invariants, ("fuzz",)) == ("invariant  fuzz", "T-1 Kept   –")
    assert totals(invariants, ("fuzz",)) == {"checked": 0, "n/a": 1, "open": 0, "checked without a mutant": 0}
    assert list(as_json(invariants, ("fuzz",))["invariants"][0]["cells"]) == ["fuzz"]
