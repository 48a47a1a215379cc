"""Every name in the catalogue exists, and no check in it is vacuous."""

import importlib
from pathlib import Path

import pytest

from mqproof.conformance.mutants import filter_servers, wire
from mqproof.fuzz import simulation
from mqproof.reference import mutants as reference_mutants
from mqproof.spec.catalogue import LAYERS, CatalogueError, Invariant, by_name, catalogue, parse
from mqproof.spec.model_file import Kind, load
from tests.protocol_chapters import sections

ROOT = Path(__file__).parents[2]
TLA = ROOT / "spec" / "tla"
PACKAGES = {
    layer: f"mqproof.{folder}"
    for layer, folder in (
        ("reference", "reference"),
        ("conformance", "conformance"),
        ("fuzz", "fuzz"),
        ("audit", "spark_audit"),
    )
}

CHECKED = [(i, layer) for i in catalogue().values() for layer in LAYERS if layer in i.checks]
IDS = [f"{i.id}-{layer}" for i, layer in CHECKED]
NAMED = [(i, layer, target) for i, layer in CHECKED for target in i.checks[layer]]


@pytest.mark.parametrize(
    ("invariant", "layer", "target"), NAMED, ids=[f"{i.id}-{target}" for i, _, target in NAMED]
)
def test_each_check_named_in_the_catalogue_exists(invariant: Invariant, layer: str, target: str) -> None:
    if layer == "tla":
        module, _, operator = target.partition("!")
        assert operator == invariant.name
        # A refinement mapping belongs to the bounded module.
        sources = [(TLA / f"{name}.tla").read_text(encoding="utf-8") for name in (module, f"MC{module}")]
        assert any(f"\n{operator} ==" in source for source in sources)
        return
    module, _, attribute = target.rpartition(".")
    assert callable(getattr(importlib.import_module(f"{PACKAGES[layer]}.{module}"), attribute))


@pytest.mark.parametrize(("invariant", "layer"), CHECKED, ids=IDS)
def test_each_check_in_the_catalogue_has_a_mutant(invariant: Invariant, layer: str) -> None:
    assert invariant.mutants.get(layer), f"{invariant.id} in {layer} has no mutant"


def test_each_tla_mutant_is_listed_under_the_invariant_it_must_violate() -> None:
    questions = {q.name: q for model in load().questions.values() for q in model if q.kind is Kind.MUTANT}
    named = {name: i.name for i in catalogue().values() for name in i.mutants.get("tla", [])}
    known = {invariant.name for invariant in catalogue().values()}
    assert named == {name: q.violates for name, q in questions.items() if q.violates in known}


def test_each_reference_mutant_is_listed_under_the_invariant_it_must_violate() -> None:
    named = {
        name: i.name
        for i in catalogue().values()
        if i.id != "SPEC-2"  # the comparison with TLC uses a mutant of another invariant
        for name in i.mutants.get("reference", [])
    }
    known = {invariant.name for invariant in catalogue().values()}
    assert named == {m.name: m.invariant for m in reference_mutants.MUTANTS.values() if m.invariant in known}


@pytest.mark.parametrize(
    ("layer", "module"),
    [
        ("conformance", "mqproof.conformance.registry.mutant_judge"),
        ("fuzz", "mqproof.fuzz.mutants"),
        ("audit", "mqproof.spark_audit.quality.mutants"),
    ],
)
def test_the_catalogue_lists_the_mutants_of_the_layer(layer: str, module: str) -> None:
    named = {name for invariant in catalogue().values() for name in invariant.mutants.get(layer, [])}
    known = set(importlib.import_module(module).names())
    if layer == "fuzz":  # simulations are fuzz targets too, and only they detect some mutants
        known |= set(simulation.names())
    if layer == "conformance":  # a defect of a wire server breaks a numbered case, not an invariant
        known -= {*wire.MUTANTS, *filter_servers.OF_UPLOADS}
    assert named <= known
    if layer != "fuzz":  # fuzz targets have invariants of their own, such as bounded allocation
        assert named == known


def test_a_layer_does_not_have_both_a_check_and_a_reason_for_none() -> None:
    for invariant in catalogue().values():
        assert not set(invariant.checks) & set(invariant.why), invariant.id


def test_the_source_of_each_invariant_is_a_section_of_the_protocol() -> None:
    missing = {i.source for i in catalogue().values()} - sections()
    assert not missing


def test_an_invariant_can_be_looked_up_by_name() -> None:
    assert by_name("SyncAckedDurable").id == "FLUSH-1"
    assert by_name("SyncAckedDurable").snake_name == "sync_acked_durable"
    with pytest.raises(KeyError):
        by_name("Nonsense")


ENTRY = """
[[invariant]]
id = "X-1"
name = "Sound"
statement = "s"
source = "s"
kind = "safety"
scope = "s"
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[invariant]", "Expected"),
        (ENTRY.replace('kind = "safety"', ""), "X-1: missing kind"),
        (ENTRY.replace("safety", "hope"), "X-1: kind is 'hope', expected safety or liveness"),
        (ENTRY + 'colour = "red"', "X-1: unknown colour"),
        (ENTRY + 'checks.magic = "m"', "X-1: checks names ['magic']"),
        (ENTRY + ENTRY, "X-1 Sound appears twice"),
    ],
)
def test_the_error_for_an_invalid_catalogue_names_the_entry_and_the_field(text: str, message: str) -> None:
    with pytest.raises(CatalogueError) as caught:
        parse(text)
    assert message in str(caught.value)


def test_a_layer_of_an_invariant_is_checked_or_not_applicable_or_open() -> None:
    invariant = parse(ENTRY + 'checks.tla = ["M!Sound", "N!Sound"]\nwhy.audit = "logs do not show it"')["X-1"]
    assert [invariant.cell(layer) for layer in ("tla", "audit", "fuzz")] == ["checked", "n/a", "open"]
