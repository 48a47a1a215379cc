"""Tests the schemas of the audit's tables."""

from typing import Any, cast

import pytest

from mqproof.spark_audit.schema import EVENTS, FINDINGS, KEY, SchemaError, require
from mqproof.spec.events import COLUMNS


class Table:
    columns = ("node", "kind")


def test_an_event_has_the_columns_of_the_vocabulary_in_their_order() -> None:
    assert EVENTS.fieldNames() == list(COLUMNS)


def test_the_key_of_a_finding_consists_of_its_columns() -> None:
    assert set(KEY) <= set(FINDINGS.fieldNames())


def test_a_missing_column_is_named_beside_the_existing_ones() -> None:
    table = cast("Any", Table())
    require(table, ("kind",), "the check")
    with pytest.raises(SchemaError, match="the check needs column seq, ts; the table has kind, node"):
        require(table, ("seq", "kind", "ts"), "the check")
