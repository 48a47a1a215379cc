"""Audits store directories: those of released brokers have no violation, and injected faults are found.

The control run of the mutants (test_audit.py) shows that each injected fault is found, without false alarms.
"""

import json
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from typer.testing import CliRunner

from mqproof.report.model import Exit
from mqproof.spark_audit.checks.topics_known import topics_unknown
from mqproof.spark_audit.cli import app
from mqproof.spark_audit.engine import active
from mqproof.spark_audit.engine.embedded.database import Database
from mqproof.spark_audit.generator import store_directory
from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spark_audit.sources.store.store_tables import _committed, name_stores
from mqproof.spark_audit.sources.store.stored import Stored
from tests.spark_audit.sources.logs import golden, write_member


def audit(*arguments: str | Path | int) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["audit", "run", *map(str, arguments)])
    return done.exit_code, done.output


def test_the_stores_of_killed_released_brokers_hold(tmp_path: Path) -> None:
    """The stores are of a broker and of members of two releases with `enableDLegerCommitLog`.

    Each member is the only one in its group. The files are as small as in test_golden.py. A member stored 90
    messages and 2 delayed by 1 s, was killed, delivered these 2 again, stored 30, and was killed. The index
    of its ledger, mostly 160 MB of zeros, is left out. Version 4.9.5 dropped a part of the key index.
    """
    names = ("apache-4.9.5-killed", "apache-4.9.5-member", "apache-5.5.0-member")
    stores = [word for name in names for word in ("--store", f"{name}={golden(name, tmp_path)}")]
    out = tmp_path / "result.json"
    code, output = audit(*stores, "--index-slots", 50, "--json", out)
    assert code == Exit.HELD, output
    results = json.loads(out.read_text())["results"]
    counts = {result["id"]: result["counts"] for result in results if result["verdict"] == "held"}
    assert list(counts) == ["FLUSH-3", "FLUSH-4", "FLUSH-5", "FLUSH-6"]
    assert {result["id"] for result in results} - set(counts) == {"REPL-1", "REPL-2", "RAFT-3"}
    assert counts["FLUSH-3"]["queue_entries"] == 155 + 126 + 126
    assert counts["FLUSH-6"]["stored_records"] == 155 + 126 + 126
    assert counts["FLUSH-6"]["index_entries"] == 385 + 64 + 252


def test_the_store_of_a_group_member_is_judged_like_any_store(tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "result.json"
    write_member(store, 60)
    code, output = audit("--store", store, "--index-slots", 50, "--json", out)
    assert code == Exit.HELD, output
    results = json.loads(out.read_text())["results"]
    counts = {result["id"]: result["counts"] for result in results if result["verdict"] == "held"}
    assert list(counts) == ["FLUSH-3", "FLUSH-4", "FLUSH-5", "FLUSH-6"]
    assert counts["FLUSH-6"]["stored_records"] == counts["FLUSH-6"]["queue_entries"] == 60
    segment = min((store / "dledger-n0" / "data").iterdir())
    with segment.open("r+b") as ledger:
        ledger.seek(48 + 48 + 90)  # a no-op, the header of an entry, some way into its record
        ledger.write(b"damage")
    code, output = audit("--store", store, "--index-slots", 50, "--id", "FLUSH-5")
    assert code == Exit.VIOLATED, output
    assert "altered-record" in output


def test_a_committed_offset_beyond_the_end_is_found_without_an_event_log(tmp_path: Path) -> None:
    store_directory.write_store(tmp_path / "store", ("ahead", "altered", "forgotten"))
    code, output = audit("--store", tmp_path / "store", "--index-slots", 50, "--id", "DELIV-1,FLUSH-5")
    assert code == Exit.VIOLATED
    assert "offset-ahead" in output
    assert "altered-record" in output
    assert "metadata-loss" in output


def test_the_op_half_topic_may_be_missing_from_topics_json(tmp_path: Path) -> None:
    topics = ("RMQ_SYS_TRANS_OP_HALF_TOPIC", "lost", "known")
    with active.embedded(), closing(Database(tmp_path)) as database:
        stored = SimpleNamespace(
            entries=database.createDataFrame(
                [("b", "entry", topic, 0, 100) for topic in topics],
                "broker string, kind string, topic string, queue_id int, commit_offset bigint",
            ),
            bounds=database.createDataFrame([("b", 0)], "broker string, log_begin bigint"),
            topics=database.createDataFrame(
                [("b", None, None), ("b", "known", 1)], "broker string, topic string, queues int"
            ),
        )
        found = topics_unknown(cast(Stored, stored), "DELIV-1")
        assert [row["topic"] for row in found.collect()] == ["lost"]


def test_wrong_use_prints_one_line_and_exits_with_code_2(tmp_path: Path) -> None:
    store_directory.write_store(tmp_path / "store", ())
    for member in ("n0", "n1"):
        (tmp_path / "member" / f"dledger-{member}" / "data").mkdir(parents=True)
    for arguments, message in (
        (("--store", tmp_path), "no commitlog folder in it"),
        (("--store", tmp_path / "store" / "commitlog"), "no commitlog folder in it"),
        (("--store", tmp_path / "member"), "ledgers of 2 members in it, expected that of one"),
        (("--store", tmp_path / "store", "--id", "DELIV-2"), "--id DELIV-2: it judges --events"),
        (("--events", tmp_path, "--id", "FLUSH-3"), "--id FLUSH-3: it judges a --store"),
    ):
        code, output = audit(*arguments)
        assert (code, output.count("\n")) == (Exit.USAGE, 1)
        assert message in output


def test_a_store_is_named_by_its_broker_or_its_directory(tmp_path: Path) -> None:
    for name in ("a", "b", "other/a"):
        store_directory.write_store(tmp_path / name, ())
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    assert name_stores([a, f"broker-b={b}", a]) == {"a": Path(a), "broker-b": Path(b)}
    with pytest.raises(InputError, match="another store is called a, expected BROKER=DIR"):
        name_stores([a, str(tmp_path / "other" / "a")])
    with pytest.raises(InputError, match="also given as the store of a, expected one name for it"):
        name_stores([a, f"broker-b={a}/."])


def test_offsets_are_read_in_the_format_of_released_brokers_or_from_the_backup(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.mkdir()
    assert _committed("b", tmp_path) == []
    text = '{\n\t"dataVersion":{"counter":1},\n\t"offsetTable":{"T@g":{0:250,1:7\n\t}}}'
    (config / "consumerOffset.json.bak").write_text(text)
    for broken in (None, "", '{"offsetTable":'):
        if broken is not None:
            (config / "consumerOffset.json").write_text(broken)
        assert _committed("b", tmp_path) == [("b", "T", "g", 0, 250), ("b", "T", "g", 1, 7)]
    (config / "consumerOffset.json.bak").write_text("no table")
    for _ in range(2):
        with pytest.raises(InputError, match=r"consumerOffset\.json: no table of offsets"):
            _committed("b", tmp_path)
        (config / "consumerOffset.json.bak").unlink(missing_ok=True)
