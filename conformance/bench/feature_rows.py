"""Rows of `mqproof bench broker` for features: batches, transactions, delays, filters, TLS, copies."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from mqproof.conformance.bench import feature_load, load
from mqproof.conformance.bench.broker import (
    ASYNC,
    Amount,
    BenchError,
    Copies,
    Measured,
    Part,
    Rounds,
    Sample,
    Setup,
    Side,
    rate_of,
    run,
    warm_up,
)
from mqproof.conformance.bench.load import Address, Messages

_BATCH: Final = 32
_OUTSTANDING: Final = 64
_DELAY_S: Final = 1.0
_DELAYED: Final = "DELAY\x011"
"""The property of a message with delay level 1, which is 1 s."""


def _features(side: Side, folder: Path, amount: Amount, _found: Rounds) -> Measured:
    """Measure each feature on a topic of its own."""
    with side.run(folder, ASYNC, Setup({"enablePropertyFilter": "true"})) as one:
        plain = Messages()
        run(load.create_topics(one.address, plain))
        warm_up(one.address, plain, amount)
        yield from _batches(one.address, amount)
        yield from _live(one.address, amount)
        yield from _transactions(one.address, amount)
        yield from _delayed(one.address, amount)
        yield from _selected(one.address, amount)


def _batches(address: Address, amount: Amount) -> Measured:
    messages = _created(address, Messages(("batches",), size=128, batch=_BATCH))
    sends = load.send_rate(address, messages, _at_least_one(amount.sends // 10), _OUTSTANDING)
    yield rate_of(f"batches of {_BATCH} messages of 128 bytes: messages/s", sends)


def _live(address: Address, amount: Amount) -> Measured:
    messages = _created(address, Messages(("live",)))
    yield rate_of(
        "sent and read by a live consumer: messages/s",
        feature_load.live_rate(address, messages, amount.sends, _OUTSTANDING),
    )


def _transactions(address: Address, amount: Amount) -> Measured:
    half = Messages(("transactions",), properties=(feature_load.HALF,), sys_flag=feature_load.PREPARED)
    total = _at_least_one(amount.sends // 3)
    yield rate_of(
        "transactions: commits/s",
        feature_load.transaction_rate(address, _created(address, half), total, _OUTSTANDING),
    )


def _delayed(address: Address, amount: Amount) -> Measured:
    messages = _created(address, Messages(("delayed",), properties=(_DELAYED,)))
    total = _at_least_one(amount.sends // 3)
    yield rate_of(
        f"delayed by {_DELAY_S:g} s, sent and read, without the delay: messages/s",
        feature_load.live_rate(address, messages, total, _OUTSTANDING, _DELAY_S),
    )


def _selected(address: Address, amount: Amount) -> Measured:
    messages = _created(address, Messages(("selected",), properties=("size\x012", "size\x0110")))
    run(load.send_rate(address, messages, amount.sends, _OUTSTANDING))
    pulls = load.pull_rate(address, messages, amount.sends // 2, "size > 5")
    yield rate_of("half of the messages, selected by SQL92: pulled messages/s", pulls)


def _tls(side: Side, folder: Path, amount: Amount, _found: Rounds) -> Measured:
    _certificate(folder)
    with side.run(folder, ASYNC, Setup(tls=folder)) as one:
        plain = Messages()
        run(load.create_topics(one.address, plain))
        warm_up(one.address, plain, amount)
        encrypted = replace(one.address, tls=True)
        run(load.send_rate(encrypted, plain, _at_least_one(amount.sends // 10), _OUTSTANDING))
        sends = load.send_rate(encrypted, plain, amount.sends, _OUTSTANDING)
        yield rate_of(f"TLS, {_OUTSTANDING} outstanding: sends/s", sends)
        pulls = load.pull_rate(encrypted, plain, amount.sends)
        yield rate_of("TLS: pulled messages/s", pulls)


def _certificate(folder: Path) -> None:
    """Write a key and a certificate of its own, which clients do not check. Raises BenchError."""
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise BenchError(f"openssl made no certificate: {error}") from None


def _copied(copies: Copies) -> Part:
    def part(side: Side, folder: Path, amount: Amount, _found: Rounds) -> Iterator[Sample]:
        with side.run_copied(folder, copies) as address:
            messages = _created(address, Messages())
            warm_up(address, messages, amount)
            sends = load.send_rate(address, messages, amount.sends, _OUTSTANDING)
            yield rate_of(f"{copies.value}, {_OUTSTANDING} outstanding: sends/s", sends)

    return part


def _created(address: Address, messages: Messages) -> Messages:
    run(load.create_topics(address, messages))
    return messages


def _at_least_one(count: int) -> int:
    return max(1, count)


FEATURES: Final[dict[str, Part]] = {
    "features": _features,
    "tls": _tls,
    "slave": _copied(Copies.SLAVE),
    "group": _copied(Copies.GROUP),
}
"""Parts by name, each measured in each round."""
