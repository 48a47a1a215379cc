"""Settings of a broker's configuration that the audit uses: delay levels, flush mode, index slots."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from mqproof.spark_audit.sources.inputs import InputError

FLUSH_MODES: Final = ("SYNC_FLUSH", "ASYNC_FLUSH")

_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DELAY: Final = re.compile(r"(\d{1,9})([smhd])")
_BYTES_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    delays_ms: tuple[int, ...] | None = None
    """Delay of each level, from level 1; None if the file does not state them."""
    flush: str | None = None
    index_slots: int | None = None


def parse_delays(text: str, where: str) -> tuple[int, ...]:
    """Parse delay levels in RocketMQ's notation, `1s 5s 1m`, into milliseconds.

    Raises:
        InputError: the text has another form; `where` is part of the message.
    """
    found = [_DELAY.fullmatch(word) for word in text.split()]
    if not found or None in found:
        raise InputError(f"{where}: {text[:80]!r}, expected delays such as '1s 5s 10s 30s 1m 2m'")
    return tuple(int(match[1]) * _UNIT_MS[match[2]] for match in found if match)


def read_config(path: Path) -> BrokerConfig:
    """Read `messageDelayLevel`, `flushDiskType` and `maxHashSlotNum` from a broker's configuration.

    The file has a broker's properties, or JSON that exports them.

    Raises:
        InputError: it cannot be read, has neither format, or has a value that no broker accepts.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_BYTES_MAX).decode("utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    values = _of_json(path, text) if text.lstrip().startswith("{") else _of_properties(text)
    flush = values.get("flushDiskType")
    if flush not in (None, *FLUSH_MODES):
        raise InputError(f"{path}: flushDiskType {flush!r}, expected {' or '.join(FLUSH_MODES)}")
    ladder = values.get("messageDelayLevel")
    delays_ms = parse_delays(ladder, f"{path}: messageDelayLevel") if ladder else None
    slots = values.get("maxHashSlotNum")
    if slots is not None and not (slots.isdecimal() and int(slots)):
        raise InputError(f"{path}: maxHashSlotNum {slots!r}, expected a number of slots")
    return BrokerConfig(delays_ms, flush, int(slots) if slots else None)


def _of_properties(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if not line.lstrip().startswith(("#", "!")))
    return {key.strip(): value.strip() for key, _, value in pairs}


def _of_json(path: Path, text: str) -> dict[str, str]:
    try:
        table = msgspec.json.decode(text, type=dict[str, object])
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: not a configuration of a broker: {error}") from None
    return {key: str(value) for key, value in table.items() if isinstance(value, (str, int))}
