"""Spark's tables have the columns of the vocabulary and of the findings, in their order."""

from mqproof.spark_audit.schema import FINDING_COLUMNS
from mqproof.spark_audit.spark_schema import EVENTS, FINDINGS
from mqproof.spec.events import COLUMNS


def test_an_event_has_the_columns_of_the_vocabulary_in_their_order() -> None:
    assert EVENTS.fieldNames() == list(COLUMNS)


def test_a_finding_has_its_columns_with_their_types() -> None:
    assert {field.name: field.dataType.simpleString() for field in FINDINGS.fields} == FINDING_COLUMNS
    assert FINDINGS.fieldNames() == list(FINDING_COLUMNS)
