"""Tests the schemas of the audit's tables."""

from typing import Any, cast

import pytest

from mqproof.spark_audit.schema import FINDING_COLUMNS, KEY, SchemaError, require


class Table:
    columns = ("node", "kind")


def test_the_key_of_a_finding_consists_of_its_columns() -> None:
    assert set(KEY) <= set(FINDING_COLUMNS)


def test_a_missing_column_is_named_beside_the_existing_ones() -> None:
    table = cast("Any", Table())
    require(table, ("kind",), "the check")
    with pytest.raises(SchemaError, match="the check needs column seq, ts; the table has kind, node"):
        require(table, ("seq", "kind", "ts"), "the check")
