"""Each feature of `bench broker` is measured on real brokers, and none waits for messages without an end."""

import asyncio
from pathlib import Path
from typing import NoReturn

import pytest

from mqproof.conformance.bench import feature_load, load
from mqproof.conformance.bench.broker import PLAIN, Amount, BenchError, Setup, Side, measure, ours
from mqproof.conformance.bench.copied_brokers import our_copies
from mqproof.conformance.bench.feature_rows import FEATURES
from mqproof.conformance.bench.load import LoadError, Messages

SMALL = Amount(sends=200, seconds=0.2, warm_seconds=0.1, memory_sends=200, recovery_mib=1)


def rows_of(tmp_path: Path, *names: str) -> dict[str, float]:
    parts = {name: FEATURES[name] for name in names}
    result = measure({"mqproof": Side(ours, our_copies)}, parts, SMALL, 1, tmp_path, lambda _: None)
    assert not list(tmp_path.iterdir())
    return {row["row"]: row["sides"]["mqproof"]["median"] for row in result["rows"]}


@pytest.mark.deep("two processes with TLS, and delays of a second")
def test_features_and_tls_are_measured(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "features", "tls")
    assert len(rows) == 7
    assert all(rate > 0 for rate in rows.values())


@pytest.mark.deep("six processes")
def test_copies_are_measured(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "slave", "group")
    assert len(rows) == 2
    assert all(rate > 0 for rate in rows.values())


def test_the_loads_use_the_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker refuses what is not enabled, and unmatched messages are not counted."""
    monkeypatch.setattr(load, "STALL_S", 0.5)
    batches = Messages(("batches",), queues=1, size=8, batch=32)
    coloured = Messages(("coloured",), queues=1, size=8, properties=("size\x012", "size\x0110"))
    half = Messages(("halves",), queues=1, size=8, properties=(feature_load.HALF,), sys_flag=4)
    delayed = Messages(("delayed",), queues=1, size=8, properties=("DELAY\x012",))

    with ours(tmp_path, "ASYNC_FLUSH", Setup({"enablePropertyFilter": "true"})) as broker:
        at = broker.address

        async def use() -> None:
            for messages in (batches, coloured, half, delayed):
                await load.create_topics(at, messages)
            await load.send_rate(at, batches, 2, 1)
            assert len(await load.read_queue(at, batches, 0)) == 64
            await load.send_rate(at, coloured, 10, 2)
            with pytest.raises(LoadError, match=r"5 of 6 .* nothing more for 0.5 s"):
                await load.pull_rate(at, coloured, 6, "size > 5")
            await load.send_rate(at, half, 3, 1)
            assert not await load.read_queue(at, half, 0)
            await feature_load.transaction_rate(at, half, 4, 2)
            assert len(await load.read_queue(at, half, 0)) == 4
            with pytest.raises(LoadError, match="0 of 3 messages were delivered"):
                await feature_load.live_rate(at, delayed, 3, 1)

        asyncio.run(use())


def test_a_part_that_fails_on_a_side_is_named_and_the_others_are_measured(tmp_path: Path) -> None:
    def not_started(folder: Path, flush: str, setup: Setup = PLAIN) -> NoReturn:
        raise BenchError(f"no {flush} in {folder.name and setup}")

    sides = {"mqproof": Side(ours, our_copies), "other": Side(not_started, our_copies)}
    result = measure(sides, {"tls": FEATURES["tls"]}, SMALL, 1, tmp_path, lambda _: None)
    assert [list(row["sides"]) for row in result["rows"]] == [["mqproof"], ["mqproof"]]
    assert len(result["missing"]) == 1
    assert result["missing"][0].startswith("tls, other, round 1: no ASYNC_FLUSH")


def test_without_openssl_the_reason_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BenchError, match="openssl made no certificate"):
        rows_of(tmp_path, "tls")
