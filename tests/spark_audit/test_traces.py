"""Message traces: every known shape of a record is read, and what is absent from a trace proves nothing."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from impl.client.compression import deflated
from impl.message import Message
from impl.store import record
from report.model import Verdict
from spark_audit.inputs import InputError
from spark_audit.traces import TRACE_TOPIC, find_traces, judge_traces, read_traces

SECOND_MS = 1000
BEGIN_MS = 1_790_000_000_000


def pub(msg_id: str, at_s: int, topic: str = "t", success: str = "true", **more: str) -> str:
    fields = ["Pub", str(BEGIN_MS + at_s * SECOND_MS), "DefaultRegion", "p", topic, msg_id, "TagA", "k"]
    fields += ["10.0.0.1:10911", "4", "3", more.get("kind", "0")]
    return "\x01".join([*fields, *more.get("tail", f"0A0B {success}").split(" ")])


def before(msg_id: str, at_s: int, group: str = "g", times: int = 0) -> str:
    return "\x01".join(
        ["SubBefore", str(BEGIN_MS + at_s * SECOND_MS), "null", group, f"r{at_s}", msg_id, str(times), "k"]
    )


def after(msg_id: str, at_s: int) -> str:
    return "\x01".join(["SubAfter", f"r{at_s}", msg_id, "2", "true", "k", "0"])


def ended(msg_id: str, at_s: int, state: str) -> str:
    fields = ["EndTransaction", str(BEGIN_MS + at_s * SECOND_MS), "null", "p", "t", msg_id, "null", "null"]
    return "\x01".join([*fields, "10.0.0.1:10911", "1", "tx", state, "false"])


STORY = [
    pub("m_seen", 0),
    before("m_seen", 1),
    after("m_seen", 1),
    # Older and newer releases write other numbers of fields.
    pub("m_old", 2, tail="true"),
    pub("m_unseen", 3, tail="0A0B true 10.0.0.7"),
    pub("m_weak", 3, success="false"),
    before("m_old", 4),
    before("m_old", 5, times=1),
    pub("m_of_batch,m_of_batch_too", 5),
    before("m_of_batch", 6),
    before("m_of_batch_too", 6),
    before("m_twice", 6),
    before("m_twice", 7),
    pub("m_in_flight", 8),
    "Pop\x011\x012",
    "Pub\x01soon\x01",
]


def test_absence_from_a_trace_gives_bounds_and_never_a_loss(spark: SparkSession, tmp_path: Path) -> None:
    # As exported: a message a line, each record ended by its mark.
    text = "".join(f"{line}\x02{chr(10) if number % 3 == 2 else ''}" for number, line in enumerate(STORY))
    (tmp_path / "trace.txt").write_text(text)
    stores, texts = find_traces([str(tmp_path), str(tmp_path / "trace.txt")])
    assert (stores, texts) == ([], [tmp_path / "trace.txt"])
    traces = read_traces(spark, stores, texts)
    assert traces.unreadable.count() == 1
    results = {result.id: result for result in judge_traces(traces, 100_000, judged=("DELIV-2",))}
    assert {name: result.verdict for name, result in results.items()} == {
        "DELIV-1": Verdict.UNKNOWN,
        "DELIV-2": Verdict.NOT_TESTED,
        "DELIV-3": Verdict.UNKNOWN,
    }
    assert results["DELIV-1"].counts == {
        "traced_due": 5,
        "traced_unseen": 1,
        "traced_in_flight": 1,
        "lost_min": 0,
        "lost_max": 1,
    }
    assert results["DELIV-2"].counts["phantoms_max"] == 1
    assert results["DELIV-3"].counts["unexplained_max"] == 1
    assert "between 0 and 1 of 5 are lost" in results["DELIV-1"].detail


def test_traces_are_read_where_a_broker_stored_them(spark: SparkSession, tmp_path: Path) -> None:
    story = [
        [
            pub("m_committed", 0, kind="1"),
            ended("m_committed", 1, "COMMIT_MESSAGE"),
            before("m_committed", 2),
        ],
        [pub("m_rolled", 3, kind="1"), ended("m_rolled", 4, "ROLLBACK_MESSAGE"), before("m_rolled", 5)],
    ]
    log = b""
    for topic, records in [
        (TRACE_TOPIC, story[0]),
        ("other", [before("m_other", 0)]),
        (TRACE_TOPIC, story[1]),
    ]:
        message = Message(topic, "".join(f"{r}\x02" for r in records).encode(), {}, 0)
        # A client compresses its longer traces, as any message.
        draft = record.encode(deflated(message) if records is story[1] else message)
        record.place(draft, 0, len(log), BEGIN_MS)
        log += draft
    for torn in (b"\xff", deflated(message).body[:-1]):
        draft = record.encode(Message(TRACE_TOPIC, torn, {}, 0, sys_flag=0x1))
        record.place(draft, 0, len(log), BEGIN_MS)
        log += draft
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(log.ljust(8192, b"\0"))
    traces = read_traces(spark, *find_traces([str(tmp_path)]))
    assert [row["line"] for row in traces.unreadable.collect()] == [None, None]
    results = {result.id: result for result in judge_traces(traces, 100_000, judged=())}
    assert results["DELIV-1"].counts["traced_due"] == 1, "what was rolled back is not due"
    assert results["DELIV-2"].counts["traced_delivered"] == 2
    assert results["DELIV-9"].verdict is Verdict.VIOLATED
    assert [witness.values["msg_id"] for witness in results["DELIV-9"].witnesses] == ["m_rolled"]


def test_a_path_without_traces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        find_traces([str(tmp_path / "nowhere")])
    with pytest.raises(InputError, match="no file in this folder"):
        find_traces([str(tmp_path)])
