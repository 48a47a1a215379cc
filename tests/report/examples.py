"""Example reports, shared by the tests of the renderers."""

from typing import Final

from mqproof.report.model import Figure, Moment, Report, Result, Table, Verdict, Witness

SVG: Final = (
    '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><circle r="3"/></svg>'
)

NASTY: Final = "a\x00b\x1b[31m<script>alert('x')</script>&amp; \"q\" | `tick` \u202e\udc80\uffff"
"""Text that a faulty peer may put into a witness: control characters, markup, a lone surrogate."""

REPLAY: Final = "mqproof conform --target mutant:ack_before_flush --seed 7"

REPORT: Final = Report(
    title="mqproof demo",
    results=(
        Result("FLUSH-1", "SyncAckedDurable", "tla", Verdict.HELD, {"distinct states": 12345}, seconds=3.2),
        Result(
            "FLUSH-1",
            "SyncAckedDurable",
            "conformance",
            Verdict.VIOLATED,
            {"scripts": 200, "crashes": 35},
            (
                Witness("m_lost was acked and is gone", {"msg_id": "m_lost", "file": "a b.log", "line": "7"}),
                Witness("m_too is gone", timeline=(Moment("12:00:00.5", "broker-a", "crash"),)),
            ),
            "an acked message is lost",
            REPLAY,
            12.5,
        ),
        Result("FLUSH-3", "QueuePointsIntoLog", "tla", Verdict.UNKNOWN, detail="no crash happened"),
        Result("DELIV-1", "NoAckedLost", "audit", Verdict.NOT_TESTED, detail="the target cannot restart"),
    ),
    facts={"seed": "7", "target": "impl"},
    tables=(Table("Phases", ("phase", "seconds"), (("check | model", "3.2"),)),),
    figures=(Figure("Sends by second", SVG),),
)

NASTY_REPORT: Final = Report(
    title=NASTY,
    results=(
        Result(
            NASTY,
            NASTY,
            NASTY,
            Verdict.VIOLATED,
            {NASTY: 1},
            (Witness(NASTY, {NASTY: NASTY}, (Moment(NASTY, NASTY, NASTY),)),),
            NASTY,
            NASTY,
        ),
        Result(NASTY, NASTY, "other", Verdict.UNKNOWN, {}, (), NASTY),
    ),
    facts={NASTY: NASTY},
    tables=(Table(NASTY, (NASTY,), ((NASTY,),)),),
)

EMPTY: Final = Report("nothing was run", ())
