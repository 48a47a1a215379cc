"""Store directories as tables for the checks: the records of the log, and the entries that point to them.

The tables contain the rows of several brokers, each row with its broker's name. spark_stores.py and
embedded_stores.py read these rows on their engine.
"""

import re
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from mqproof.spark_audit.engine import functions as f
from mqproof.spark_audit.engine.frames import DataFrame, SparkSession
from mqproof.spark_audit.sources.inputs import InputError
from mqproof.spark_audit.sources.store.ranges import StoreError, is_ledger, is_store, log_folders
from mqproof.spark_audit.sources.store.stored import QUEUE, Stored, bucket

Config = TypeVar("Config", bound=msgspec.Struct)

_BARE_KEY: Final = re.compile(r"([{,]\s*)(\d+)(\s*:)")
_NOT_QUEUED: Final = (0x4, 0xC)
"""Transaction types of prepared and rollback records, which are in no queue."""

_UP_TO_MEMBER: Final = re.compile(r".+[-_.:/]")

_HASHED: Final = (
    "size", "topic", "queue_id", "queue_offset", "born_ms", "stored_ms", "born_host", "store_host", "flag",
    "sys_flag", "reconsume_times", "prepared_offset", "body_size", "body_crc", "properties",
)  # fmt: skip
"""All fields of a record except its place."""


class _Offsets(msgspec.Struct, rename="camel"):
    offset_table: dict[str, dict[int, int]] = {}


class _Topic(msgspec.Struct, rename="camel"):
    read_queue_nums: int = 0
    write_queue_nums: int = 0


class _Topics(msgspec.Struct, rename="camel"):
    topic_config_table: dict[str, _Topic] = {}


def name_stores(given: list[str]) -> dict[str, Path]:
    """Return the directory of each broker, given `DIR` or `BROKER=DIR`.

    A broker without a name is named after its directory. A slave is named BROKER:ID.

    Raises:
        InputError: not a store directory; two stores with one name, or one store with two names.
    """
    stores: dict[str, Path] = {}
    for text in given:
        name, separator, path = text.partition("=")
        if not separator or Path(text).is_dir():
            name, path = Path(text).resolve().name, text
        directory = Path(path)
        if not is_store(directory):
            raise InputError(f"{path}: no commitlog folder in it, expected a store directory of a broker")
        try:
            log_folders(path)
        except StoreError as error:
            raise InputError(str(error)) from None
        if name in stores and stores[name].resolve() != directory.resolve():
            raise InputError(f"--store {text}: another store is called {name}, expected BROKER=DIR")
        for other, known in stores.items():
            if other != name and known.resolve() == directory.resolve():
                raise InputError(
                    f"--store {text}: also given as the store of {other}, expected one name for it"
                )
        stores[name] = directory
    return stores


def log_columns(records: DataFrame) -> DataFrame:
    """Return the columns of the rows of commit logs (commit_log.SCHEMA, broker) that the checks read."""
    return records.select(
        "broker", "kind", "commit_offset", "size", "topic", "queue_id", "queue_offset", "msg_id", "tags",
        "born_ms", "stored_ms", f.xxhash64(*_HASHED).alias("hashed"), "term", "entry_index",
        (~f.col("sys_flag").bitwiseAND(0xC).isin(*_NOT_QUEUED)).alias("queued"), "detail",
    )  # fmt: skip


def tables_of(
    session: SparkSession,
    stores: Mapping[str, Path],
    log: DataFrame,
    queues: DataFrame,
    index: DataFrame,
) -> Stored:
    """Return the tables of the stores, given the rows of their logs (log_columns), queues and indexes.

    `session` is that of the active engine.

    Raises:
        InputError: a consumerOffset.json or topics.json is invalid.
    """
    records = log.where("kind = 'record'").drop("kind", "detail")
    return Stored(
        records,
        log.where("kind <> 'record'").select("broker", "kind", "commit_offset", "size", "detail"),
        queues,
        index.select("broker", "kind", "file", "commit_offset", "detail"),
        session.createDataFrame(
            [row for name, directory in stores.items() for row in _committed(name, directory)],
            "broker string, topic string, group string, queue_id int, queue_offset bigint",
        ),
        session.createDataFrame(
            [row for name, directory in stores.items() for row in _topics(name, directory)],
            "broker string, topic string, queues int",
        ),
        _bounds(session, stores, log),
        session.createDataFrame(_replicas(stores), "master string, slave string"),
        session.createDataFrame(_members(stores), "master string, slave string"),
        _ambiguous(records.where("queued"), queues.where("kind = 'entry'")),
    )


def _replicas(stores: Mapping[str, Path]) -> list[tuple[str, str]]:
    """Return (master, slave) for stores given as BROKER:ID whose master's store is also given."""
    pairs = []
    for slave in stores:
        name, separator, broker_id = slave.rpartition(":")
        if separator and broker_id.isdecimal() and int(broker_id) > 0:
            pairs += [(master, slave) for master in (name, f"{name}:0") if master in stores]
    return pairs


def _members(stores: Mapping[str, Path]) -> list[tuple[str, str]]:
    """Return pairs of stores with a ledger whose names are equal up to the last separator.

    A name without a separator does not show the group of the member.
    """
    ledgers = {
        name: up_to_member[0]
        for name, directory in stores.items()
        if _has_ledger(directory) and (up_to_member := _UP_TO_MEMBER.match(name))
    }
    return [(one, other) for one, other in combinations(sorted(ledgers), 2) if ledgers[one] == ledgers[other]]


def _has_ledger(directory: Path) -> bool:
    return any(map(is_ledger, log_folders(str(directory))))


def _bounds(session: SparkSession, stores: Mapping[str, Path], log: DataFrame) -> DataFrame:
    clean = [(name, _is_clean(directory)) for name, directory in stores.items()]
    ends = log.groupBy("broker").agg(
        f.min("commit_offset").alias("log_begin"),
        f.max(f.expr("CASE WHEN kind = 'record' THEN commit_offset + size END")).alias("whole_end"),
    )
    brokers = session.createDataFrame(clean, "broker string, is_clean boolean")
    return brokers.join(ends, "broker", "left").fillna(0, ["log_begin", "whole_end"])


def _is_clean(directory: Path) -> bool:
    """Return whether the broker was shut down cleanly.

    A member's store does not show how much of its ledger is committed: it is treated as one of a killed
    broker.
    """
    return not (directory / "abort").exists() and not _has_ledger(directory)


def _ambiguous(records: DataFrame, entries: DataFrame) -> DataFrame:
    """Return the buckets in which the fingerprints of records and entries differ."""
    hashed = f.xxhash64("queue_offset", "commit_offset", f.col("size").cast("bigint"))

    def fingerprint(rows: DataFrame, side: str) -> DataFrame:
        return rows.groupBy(*QUEUE, bucket().alias("bucket")).agg(
            f.struct(
                f.count(f.lit(1)).alias("rows"),
                f.bit_xor(hashed).alias("xor"),
                # Sum the upper halves of the hashes, which cannot overflow: unlike xor, it detects rows that
                # occur twice.
                f.sum(f.shiftright(hashed, 32)).alias("sum"),
            ).alias(side)
        )

    both = fingerprint(records, "logged").join(
        fingerprint(entries, "queued"), [*QUEUE, "bucket"], "full_outer"
    )
    return both.where(~f.col("logged").eqNullSafe(f.col("queued"))).select(*QUEUE, "bucket")


def _committed(broker: str, directory: Path) -> list[tuple[str, str, str, int, int]]:
    """Return the contents of consumerOffset.json, or nothing."""
    config = _config(directory, "consumerOffset.json", _Offsets)
    return [
        (broker, *_parts(key), queue_id, offset)
        for key, queues in (config.offset_table if config else {}).items()
        for queue_id, offset in queues.items()
    ]


def _topics(broker: str, directory: Path) -> list[tuple[str, str | None, int]]:
    """Return the contents of topics.json, with an additional row if the file exists; or nothing."""
    config = _config(directory, "topics.json", _Topics)
    if config is None:
        return []
    topics = config.topic_config_table.items()
    return [
        (broker, None, 0),
        *[(broker, name, max(topic.read_queue_nums, topic.write_queue_nums)) for name, topic in topics],
    ]


def _config(directory: Path, name: str, shape: type[Config]) -> Config | None:
    """Return the contents of the file, or else of its backup; None if neither exists.

    Raises:
        InputError: the file is not such a table.
    """
    damaged = ""
    for path in (directory / "config" / name, directory / "config" / f"{name}.bak"):
        try:
            # Released brokers do not quote numeric keys.
            return msgspec.json.decode(_BARE_KEY.sub(r'\1"\2"\3', path.read_text()), type=shape)
        except FileNotFoundError:
            continue
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            damaged = damaged or f"{path}: no table of {_TABLES[name]}: {error}"
    if damaged:
        raise InputError(damaged)
    return None


_TABLES: Final = {"consumerOffset.json": "offsets", "topics.json": "topics"}


def _parts(key: str) -> tuple[str, str]:
    topic, _, group = key.partition("@")
    return topic, group
