"""Partial aggregates: the rows of one key range that a task computed, packed into one binary value.

Spark moves single rows, which costs as much as computing the aggregates. It moves packed rows as whole
values.
"""

from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mqproof.spark_audit.scan.tasks import Batches

PARTIAL_AGGREGATES: Final = pa.schema([("part", pa.int32()), ("aggregate", pa.binary())])
"""Many rows as one binary value, a table in Arrow's stream format. All rows of one key are in one part."""


def packed(rows: pa.Table, part: npt.NDArray[np.integer[Any]]) -> pa.RecordBatch:
    """Pack rows as PARTIAL_AGGREGATES, one value for each part; `part` gives the part of each row."""
    order = np.argsort(part, kind="stable")
    in_order = rows.take(order)
    numbers, begins = np.unique(part[order], return_index=True)
    filled = pairwise([*begins.tolist(), len(rows)])
    aggregates = [_packed(in_order.slice(begin, end - begin)) for begin, end in filled]
    return pa.RecordBatch.from_arrays(
        [pa.array(numbers, pa.int32()), pa.array(aggregates)], schema=PARTIAL_AGGREGATES
    )


_SMALLER: Final = pa.ipc.IpcWriteOptions(compression="lz4")


def _packed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=_SMALLER) as stream:
        stream.write_table(rows)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpacked(batches: Batches) -> Batches:
    for batch in batches:
        for aggregate in batch["aggregate"]:
            yield from pa.ipc.open_stream(aggregate.as_buffer())
