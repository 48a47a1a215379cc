"""Goal: one configuration can be derived from another. Method: small configurations."""

from mqproof.spec.tlc import config

TEXT = r"""
\* INVARIANT Commented
CONSTANTS Nodes = {n1, n2}  None = None
  Mode = {"INVARIANT", "x"}
CONSTANT Step <- BadStep
SPECIFICATION Spec (* PROPERTY No *)
INVARIANTS A B
PROPERTIES Live
SYMMETRY Perms
"""


def test_section_names_inside_comments_and_strings_are_ignored() -> None:
    parsed = config.parse(TEXT)
    assert parsed.properties == ("A", "B", "Live")
    assert parsed.names("SPECIFICATION") == ("Spec",)
    assert '"INVARIANT"' in parsed.of("CONSTANT")[0]


def test_a_configuration_for_one_property_keeps_its_section_and_drops_the_others() -> None:
    parsed = config.parse(TEXT)
    assert parsed.asking("Live").names("PROPERTY") == ("Live",)
    assert parsed.asking("Live").names("INVARIANT") == ()
    assert parsed.asking("Probe").names("INVARIANT") == ("Probe",)
    assert parsed.asking("Probe", "PROPERTY").properties == ("Probe",)


def test_a_configuration_for_behaviours_keeps_only_constants_init_and_next() -> None:
    derived = config.parse(TEXT).behaviour("Init", "Next")
    assert [name for name, _ in derived.sections] == ["CONSTANT", "CONSTANT", "INIT", "NEXT"]


def test_the_text_of_a_configuration_is_parsed_back() -> None:
    parsed = config.parse(TEXT)
    assert config.parse(parsed.text()) == parsed


def test_model_values_are_the_names_that_only_the_configuration_defines() -> None:
    assert config.parse(TEXT).model_values() == {"n1", "n2"}
