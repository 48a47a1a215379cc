"""An append has the outcome of its own node whose range of sequence numbers contains it."""

import pyarrow as pa

from mqproof.spark_audit.passes.append_outcomes import AppendOutcomes, append_outcomes, outcome_of
from mqproof.spark_audit.scan.loops import NONE, compiled

TABLE = pa.table(
    {
        "cut_node": ["b", "a", "a", "c"],
        "after_seq": [-1, 10, -1, 5],
        "until_seq": [50, 20, 10, 90],
        "kept_end": [0, 0, 0, 0],
        "is_at_risk": [True, False, True, False],
    }
)
NODES = pa.array(["d", "c", "b", "a"]).dictionary_encode()


@compiled
def found(of: AppendOutcomes, node: int, seq: int) -> int:
    after_seq, until_seq, _, _, first, end = of
    return outcome_of(after_seq, until_seq, first[node], end[node], seq)


def test_an_append_has_an_outcome_only_from_its_own_broker() -> None:
    of = append_outcomes(TABLE, NODES)
    rows = TABLE.sort_by([("cut_node", "ascending"), ("after_seq", "ascending")]).to_pylist()
    for at, node in enumerate(NODES.dictionary.to_pylist()):
        for seq in range(-2, 100):
            expected = [
                number
                for number, row in enumerate(rows)
                if row["cut_node"] == node and row["after_seq"] < seq < row["until_seq"]
            ]
            assert found(of, at, seq) == (expected or [NONE])[0]
    assert of.is_at_risk.tolist() == [True, False, True, False]
