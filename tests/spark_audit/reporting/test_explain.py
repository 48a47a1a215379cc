"""Lists the steps of one message, from event log, store and traces."""

from pathlib import Path

from typer.testing import CliRunner

from mqproof.report.model import Exit
from mqproof.spark_audit.cli import app
from mqproof.spark_audit.generator import store_directory
from tests.spark_audit.conftest import LogBuilder, write_ndjson
from tests.spark_audit.sources.span_lines import span, write


def explain(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["audit", "explain", *map(str, arguments)])
    return done.exit_code, done.stdout if done.exit_code == Exit.HELD else done.stderr


def test_explain_lists_the_steps_from_all_inputs_in_order_of_time(tmp_path: Path) -> None:
    builder = LogBuilder(subscribed=())
    builder.send("m_0").append("m_0", 0).add("flush", "broker", commit_offset=100, attrs={"file": "queues"})
    builder.add("flush", "broker", commit_offset=100, attrs={"file": "log"}).ack("m_0", 0)
    builder.stored("m_other", 1).deliver("m_0", 0).commit(1).commit(2).crash(kept_end=0)
    # The store also has a message with this id, at another place.
    own = [
        {**row, "msg_id": "m_60" if row.get("msg_id") == "m_0" else row.get("msg_id")} for row in builder.rows
    ]
    (tmp_path / "log.ndjson").write_bytes(write_ndjson(own))
    store_directory.write_store(tmp_path / "store", ())
    inputs = (
        "--events",
        tmp_path / "log.ndjson",
        "--store",
        f"{store_directory.BROKER}={tmp_path / 'store'}",
    )
    code, output = explain("m_60", *inputs, "--index-slots", str(store_directory.SLOTS))
    assert code == Exit.HELD, output
    lines = [line[28:].split()[:2] for line in output.splitlines() if line[:26].strip()]
    assert lines == [
        ["producer", "send"],
        ["broker", "append"],
        ["broker", "flush"],
        ["producer", "send_ack"],
        ["consumer", "deliver"],
        ["broker", "offset_commit"],
        ["broker", "crash"],
        ["broker", "recover"],
        ["store", store_directory.BROKER],
    ]
    assert "m_other" not in output
    assert "file log" in output
    at = f"stored/0/{store_directory.EXPIRED + 60 // store_directory.QUEUES}"
    assert any("record" in line and at in line for line in output.splitlines())
    assert any("queue entry" in line and at in line for line in output.splitlines())
    assert "1 point at commit offset" in output
    assert "group readers is past it" in output


def test_explain_finds_a_stored_message_by_its_broker_id(tmp_path: Path) -> None:
    store_directory.write_store(tmp_path / "store", ())
    inputs = ("--store", tmp_path / "store", "--index-slots", str(store_directory.SLOTS))
    _, output = explain("m_60", *inputs)
    offset = int(output.partition("record")[2].partition("commit offset ")[2].partition(",")[0])
    assert explain(f"7F00000100002A9F{offset:016X}", *inputs) == (Exit.HELD, output)
    code, message = explain(f"7F00000100002A9F{offset + 1:016X}", *inputs)
    assert (code, "no input knows this message" in message) == (Exit.INCONCLUSIVE, True)


def test_explain_includes_the_steps_from_traces(tmp_path: Path) -> None:
    record = "\x01".join(["SubBefore", "1790000000000", "null", "g", "r", "m_0", "2", "k"])
    (tmp_path / "traces.txt").write_text(f"{record}\x02{record.replace('m_0', 'm_1')}\x02")
    code, output = explain("m_0", "--trace", tmp_path / "traces.txt")
    assert code == Exit.HELD, output
    assert output.split()[2:] == ["trace", "of", "g", "SubBefore", "times", "2"]


def test_explain_includes_spans_and_mapped_logs(tmp_path: Path) -> None:
    write(tmp_path / "spans.jsonl", [span("publish", "order-4", 1), span("process", "order-4", 2, group="g")])
    mapping = Path(__file__).parents[3] / "examples" / "kafka_audit" / "kafka.toml"
    code, output = explain("order-4", "--spans", tmp_path / "spans.jsonl", "--mapping", mapping)
    assert code == Exit.HELD, output
    steps = [line[28:].split()[:2] for line in output.splitlines()]
    assert ["span", "publish"] in steps
    assert ["span", "process"] in steps
    assert any("send_ack" in step for step in steps)
    code, output = explain("order-4", "--spans", tmp_path / "spans.jsonl")
    assert [line[28:].split()[:2] for line in output.splitlines()] == [
        ["span", "publish"],
        ["span", "process"],
    ]


def test_explain_of_an_unknown_message_is_inconclusive(tmp_path: Path) -> None:
    (tmp_path / "log.ndjson").write_bytes(write_ndjson(LogBuilder(subscribed=()).stored("m_0", 0).rows))
    code, output = explain("m_never", "--events", tmp_path / "log.ndjson")
    assert code == Exit.INCONCLUSIVE
    assert output.splitlines() == [
        "audit: reading 1 file",
        "mqproof: m_never: no input knows this message",
    ]


def test_explain_without_input_is_wrong_use() -> None:
    code, output = explain("m_0")
    assert code == Exit.USAGE
    assert "--events: name at least one event log" in output
