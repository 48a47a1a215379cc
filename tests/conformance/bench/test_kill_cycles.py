"""Messages answered SEND_OK survive many kills, and the check detects it when one does not."""

from pathlib import Path

import pytest

from mqproof.conformance.bench import kill_cycles, load
from mqproof.conformance.bench.broker import ours
from mqproof.conformance.bench.load import Messages, Sent

DEEP = (
    pytest.mark.deep("500 kills of a process; three are made in every run"),
    pytest.mark.timeout(3600),
)


@pytest.mark.parametrize(
    ("flush", "cycles"),
    [
        ("SYNC_FLUSH", 3),
        pytest.param("ASYNC_FLUSH", 500, marks=DEEP),
        pytest.param("SYNC_FLUSH", 500, marks=DEEP),
    ],
)
def test_acknowledged_messages_survive_every_kill(tmp_path: Path, flush: str, cycles: int) -> None:
    with ours(tmp_path, flush) as broker:
        outcome = kill_cycles.run(broker, cycles, seed=cycles)
    times = sorted(outcome.recovery_seconds)
    print(f"{outcome.acked} of {outcome.sent} acked, start {times[0]:.2f} to {times[-1]:.2f} s")
    assert outcome.violations == ()
    assert outcome.acked >= cycles
    assert outcome.acked <= outcome.stored <= outcome.sent


MESSAGES = Messages(("cycles",), queues=2, size=16)
SENT = Sent(4, {0, 1, 2})
GOOD = [[(0, load.body_of(0, 16)), (1, load.body_of(2, 16))], [(0, load.body_of(1, 16))]]


def broken(queue: int, *entries: tuple[int, bytes]) -> list[str]:
    queues = [list(entries) if number == queue else good for number, good in enumerate(GOOD)]
    return [found.split()[0] for found in kill_cycles._violations(MESSAGES, SENT, queues)]


def test_each_kind_of_damage_is_reported() -> None:
    zero, one, two = (load.body_of(number, 16) for number in range(3))
    assert broken(1, (0, one)) == []
    assert broken(1) == ["FLUSH-2"]
    assert broken(0, (0, zero), (2, two)) == ["FLUSH-4"]
    assert broken(0, (0, zero), (1, two), (2, b"x" * 16)) == ["FLUSH-5"]
    assert broken(1, (0, one), (1, zero)) == ["FLUSH-3", "DELIV-4"]
    assert broken(0, (0, two), (1, zero)) == ["DELIV-4"]
    assert broken(0, (0, zero), (1, zero), (2, two)) == ["DELIV-4"]
