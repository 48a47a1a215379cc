"""`mqproof audit explain`: print all steps of one message."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from mqproof.report.model import Exit
from mqproof.report.printable import counted, one_line
from mqproof.spark_audit.command.audit_inputs import AuditInputs, find_inputs
from mqproof.spark_audit.command.conversions import Conversions, Mapped, converted, mapping_errors_shown
from mqproof.spark_audit.command.engine_choice import EngineOptions
from mqproof.spark_audit.command.failures import fail, say
from mqproof.spark_audit.command.local_copies import local_copies
from mqproof.spark_audit.command.option_groups import IndexSlots, Spanned, SparkOptions, Trace, examples
from mqproof.spark_audit.engine import active

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mqproof.spark_audit.reporting.explain import Step
    from mqproof.spark_audit.sources.embedded_read import EmbeddedLog
    from mqproof.spark_audit.sources.read import Log

EXAMPLES: Final = examples(
    "explain 7F0000012A9C00000000000000000100 --events build/log --store broker-a=/var/rocketmq/store"
)


def explain_message(
    *,
    msg_id: Annotated[
        str,
        typer.Argument(help="Unique key of the message; for a message in a --store, also the broker's id."),
    ],
    events: Annotated[
        list[str] | None, typer.Option(metavar="PATH", help="Event log, folder or pattern, as for audit run.")
    ] = None,
    store: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]DIR", help="Store directory of a broker, DIR or BROKER=DIR."),
    ] = None,
    trace: Trace = None,
    mapping: Mapped = None,
    spans: Spanned = None,
    index_slots: IndexSlots = None,
    engine: EngineOptions,
    spark_options: SparkOptions,
) -> None:
    """Print all steps of one message from every input, in order of time.

    Exit codes: 0 found; 2 bad input; 3 not found in any input; 4 the engine is missing or failed.
    """
    if not (events or store or trace or mapping or spans):
        fail("--events: name at least one event log, folder or pattern, or a --store")

    with local_copies(events or []) as copies:
        given = GivenInputs(copies.paths, store or [], trace or [], mapping or [], spans or [], index_slots)
        found_steps = _found_steps(given, msg_id, engine, spark_options)
    if not found_steps:
        fail(f"{msg_id}: no input knows this message", Exit.INCONCLUSIVE)
    for steps in found_steps.values():
        for step in steps:
            typer.echo(one_line(step.line()))


@dataclass(frozen=True, slots=True)
class GivenInputs:
    """The paths that the user named."""

    events: list[str]
    store: list[str]
    trace: list[str]
    mapping: list[str]
    spans: list[str]
    index_slots: int | None


def _found_steps(
    named: GivenInputs, msg_id: str, engine: EngineOptions, spark_options: SparkOptions
) -> "dict[str, list[Step]]":
    from mqproof.spark_audit.sources.inputs import InputError

    try:
        with mapping_errors_shown():
            conversions = Conversions.read(named.mapping)
        given = find_inputs(
            named.events, named.store, named.trace, named.index_slots, conversions, named.spans
        )
        with converted(conversions, given.found) as found:
            inputs = replace(given, found=found)
            return inputs.on_engine(
                engine.engine,
                spark_options,
                lambda session, scratch: _steps(inputs, cast("SparkSession", session), scratch, msg_id),
            )
    except InputError as error:
        fail(str(error))


def _steps(
    inputs: AuditInputs, session: "SparkSession", scratch: Path, msg_id: str
) -> "dict[str, list[Step]]":
    """Return the steps of each message that the id names."""
    from mqproof.spark_audit.reporting.explain import ids_of_broker_id, message_steps, with_span_steps

    stores, texts = inputs.traces
    given = {
        "file": inputs.found.files,
        "store": inputs.stores,
        "trace input": [*stores, *texts],
        "file of spans": inputs.spans,
    }
    say("reading " + ", ".join(counted(len(each), what) for what, each in given.items() if each))
    log = inputs.read_log(session, scratch, lambda _: None)
    stored, traces = inputs.read_stores(session, scratch), inputs.read_traces(session)
    traced = traces.records if traces else None
    brokers = _brokers(log)
    steps = message_steps(session, [msg_id], log.events, brokers, stored, traced)
    if not steps and stored and (named := ids_of_broker_id(msg_id, stored)):
        say(f"the broker's id {msg_id} is of {', '.join(named)}")
        steps = message_steps(session, named, log.events, brokers, stored, traced)
    return with_span_steps(steps, inputs.spans, scratch, [msg_id])


def _brokers(log: "Log | EmbeddedLog") -> tuple[str, ...]:
    from mqproof.spark_audit.passes.profile import overview, profiled_rows

    if active.is_embedded():
        return overview(profiled_rows(log.events)).brokers
    from mqproof.spark_audit.passes.profile_partition import profile

    return overview(profile(cast("Log", log).event_log)).brokers
