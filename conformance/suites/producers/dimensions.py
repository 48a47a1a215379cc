"""The dimensions of the producer suite, and the scenario that meets a row of them."""

from typing import Final

from mqproof.conformance.engine.value_pairs import Dimension, Dimensions, Row, Value
from mqproof.conformance.suites.producers.session import ProducerSession
from mqproof.conformance.suites.producers.target import BROKERS, Fate

_OK, _BUSY = Fate.OK, Fate.BUSY
_FATES: Final = {
    "stored": (_OK, _OK, _OK),
    "stored late": (Fate.SLOW, _OK, _OK),
    "not to be retried": (Fate.ILLEGAL, _OK, _OK),
    "no answer": (Fate.SILENT, _OK, _OK),
    "busy once": (_BUSY, _OK, _OK),
    "busy twice": (_BUSY, _BUSY, _OK),
    "busy always": (_BUSY, _BUSY, _BUSY),
    "busy, then late": (_BUSY, Fate.SLOW, _OK),
    "busy, then no answer": (_BUSY, Fate.SILENT, _OK),
}
_THEN: Final = ("stored", "stored late", "no answer", "busy once", "busy always")
"""The results of the second send; with all nine, a hundred examples would not meet all pairs."""
_PAUSES_S: Final = {"none": 0.0, "0.5 s": 0.5, "5.5 s": 5.5, "11 s": 11.0, "45 s": 45.0}
_ROUTES: Final = {"kept": 0, "one broker": 1, "the first two": 2}
_COUNTS: Final = {"one": 1, "as many as queues, and more": 7}


def _answers(fates: tuple[Fate, ...]) -> str:
    """Return a regular expression for the attempts of a send; only a busy broker leads to another one."""
    tried = [fate for number, fate in enumerate(fates) if set(fates[:number]) <= {_BUSY}]
    return ", then ".join(rf"[^\n]*: {fate}" for fate in tried)


DIMENSIONS: Final = Dimensions(
    (
        Dimension("strategy", (Value("off", "avoids no broker"), Value("on", "avoids brokers")), opens=True),
        Dimension("brokers", (Value("2", "; 2 brokers"), Value("3", "; 3 brokers")), opens=True),
        Dimension("queues", (Value("1", "with 1 queues"), Value("2", "with 2 queues")), opens=True),
        Dimension(
            "first send",
            tuple(
                Value(name, rf"\A.*\nsend to {_answers(fates)}$") for name, fates in _FATES.items()
            ),
        ),
        Dimension(
            "pause",
            tuple(
                Value(name, rf"^{seconds:g} s pass$") if seconds else Value(name, hides="s pass$")
                for name, seconds in _PAUSES_S.items()
            ),
        ),
        Dimension(
            "route",
            (
                Value("kept", hides="^the topic is on"),
                Value("one broker", r"^the topic is on \w$"),
                Value("the first two", r"^the topic is on \w, \w$"),
            ),
        ),
        Dimension(
            "second send",
            tuple(
                Value(name, rf"(?s)^send to .*^send to {_answers(_FATES[name])}$") for name in _THEN
            ),
        ),
        Dimension(
            "sends that follow",
            tuple(Value(name, rf"(?:^send to .*: ok\n?){{{count}}}\Z") for name, count in _COUNTS.items()),
        ),
    ),
)  # fmt: skip


def scenario(session: ProducerSession, row: Row) -> None:
    """Send with one result, let time pass or the route change, and send with another one."""
    session.send(_FATES[row["first send"]])
    if pause_s := _PAUSES_S[row["pause"]]:
        session.wait(pause_s)
    if count := _ROUTES[row["route"]]:
        session.route(BROKERS[:count])
    session.send(_FATES[row["second send"]])
    for _ in range(_COUNTS[row["sends that follow"]]):
        session.send((_OK, _OK, _OK))
