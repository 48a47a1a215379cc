"""Measures how long after an event `mqproof audit watch` reports the violation that the event proves.

    python -m mqproof.spark_audit.quality.alarm_latency --alarms 120

The watch is a process. Its log is written meanwhile, in real time: messages of one queue, of which some are
acknowledged and never delivered. A delay begins with the delivery of a later message, which proves the loss.
It ends when the line of the lost message is read from the watch. It thus includes the time until the file of
the event is finished and moved into the watched folder.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import IO, Any, Final

import msgspec

from mqproof.spec.events import Kind

_STEP_US: Final = 1_000
"""Time between the events of a message."""


@dataclass(slots=True)
class LossyTraffic:
    """The event log of a topic with one queue and one group, to which each `lost_every`th message is lost."""

    per_s: int
    lost_every: int
    began_us: int
    proven: dict[str, int] = field(default_factory=dict)
    """Lost message, to the time of the event that proves the loss, in microseconds."""
    _unproven: list[str] = field(default_factory=list)
    _sent: int = 0
    _rows: Counter[str] = field(default_factory=Counter)

    def rows_until(self, until_us: int) -> Iterator[dict[str, Any]]:
        """Yield the rows of the messages that are sent before this time."""
        if not self._sent:
            yield self._row(Kind.SUBSCRIBE, "broker", self.began_us, group="g", attrs={"expression": "*"})
        while (at := self.began_us + self._sent * 1_000_000 // self.per_s) < until_us:
            yield from self._message(self._sent, at)
            self._sent += 1

    def _message(self, number: int, at: int) -> Iterator[dict[str, Any]]:
        name = f"m{number}"
        place = {"msg_id": name, "queue_id": 0, "queue_offset": number}
        yield self._row(Kind.SEND, "producer", at, msg_id=name, attempt=1)
        yield self._row(Kind.APPEND, "broker", at + _STEP_US, commit_offset=number * 100, **place)
        yield self._row(Kind.SEND_ACK, "producer", at + 2 * _STEP_US, status="SEND_OK", **place)
        if number % self.lost_every == self.lost_every - 1:
            self._unproven.append(name)
            return
        of_group = {"group": "g", "client": "consumer", **place}
        yield self._row(Kind.DELIVER, "consumer", at + 3 * _STEP_US, **of_group)
        yield self._row(Kind.CONSUME_OK, "consumer", at + 4 * _STEP_US, **of_group)
        self.proven.update(dict.fromkeys(self._unproven, at + 3 * _STEP_US))
        self._unproven.clear()

    def _row(self, kind: Kind, node: str, ts: int, **values: Any) -> dict[str, Any]:
        seq, self._rows[node] = self._rows[node], self._rows[node] + 1
        return {"ts": ts, "seq": seq, "node": node, "kind": kind, "topic": "t", **values}


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of a measurement, in seconds."""

    file_s: float = 10
    """Age at which a file of the log is finished, as of the hooks."""
    late_s: int = 20
    every_s: float = 5
    alarm_max_s: float = 60
    """Maximum time from the last event to its alarm; the measurement ends then."""


@dataclass(slots=True)
class Alarms:
    """The times at which a watch printed the lines of lost messages."""

    printed: IO[str]
    at_us: dict[str, int] = field(default_factory=dict)

    def read(self) -> None:
        for line in self.printed:
            names = [word.removeprefix("msg_id=") for word in line.split() if word.startswith("msg_id=")]
            if "DELIV-1" in line:
                self.at_us |= dict.fromkeys(names, time.time_ns() // 1_000)


def delays(traffic: LossyTraffic, alarms: Alarms) -> list[float]:
    """Return the seconds from each proof to its alarm, in order; infinity for a loss without an alarm."""
    never = float("inf")
    return sorted(
        (alarms.at_us[name] - proof) / 1e6 if name in alarms.at_us else never
        for name, proof in traffic.proven.items()
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def measure(alarms: int, per_s: int, timing: Timing) -> list[float]:
    """Return the delays of this number of alarms; two losses happen in a second."""
    with tempfile.TemporaryDirectory() as folder:
        incoming = Path(folder, "incoming")
        incoming.mkdir()
        command = [
            *(sys.executable, "-m", "mqproof", "audit", "watch", "--state", f"{folder}/state"),
            *("--events", str(incoming), "--late-s", str(timing.late_s), "--every-s", str(timing.every_s)),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
            assert watch.stdout is not None
            heard = Alarms(watch.stdout)
            reader = Thread(target=heard.read)
            reader.start()
            try:
                traffic = LossyTraffic(per_s, max(2, per_s // 2), time.time_ns() // 1_000)
                _write(traffic, alarms, incoming, timing, heard)
            finally:
                watch.terminate()
                reader.join()
        return delays(traffic, heard)


def _write(traffic: LossyTraffic, alarms: int, incoming: Path, timing: Timing, heard: Alarms) -> None:
    """Write files until there are enough losses, and go on without new ones until all alarms have come."""
    ends_s = float("inf")
    number = 0
    while time.time() < ends_s and len(heard.at_us) < alarms:
        time.sleep(timing.file_s)
        if len(traffic.proven) >= alarms and ends_s == float("inf"):
            traffic.lost_every = sys.maxsize
            ends_s = time.time() + timing.alarm_max_s
        lines = [msgspec.json.encode(row) + b"\n" for row in traffic.rows_until(time.time_ns() // 1_000)]
        part = incoming / f"{number}.ndjson.part"
        part.write_bytes(b"".join(lines))
        part.rename(part.with_suffix(""))
        number += 1


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="Measure the delay of the alarms of `mqproof audit watch`.")
    parser.add_argument("--alarms", type=int, default=120)
    parser.add_argument("--per-s", type=int, default=1_000, help="messages a second, of five events each")
    given = parser.parse_args(arguments)
    timing = Timing()
    found = measure(given.alarms, given.per_s, timing)
    lost = sum(delay == float("inf") for delay in found)
    print(
        f"{len(found)} violations, {lost} without an alarm; {given.per_s * 5} events/s in files of"
        f" {timing.file_s:g} s, --late-s {timing.late_s} --every-s {timing.every_s:g}; seconds from event to"
        f" alarm: p50 {quantile(found, 0.5):.1f}, p99 {quantile(found, 0.99):.1f}, maximum {found[-1]:.1f}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
