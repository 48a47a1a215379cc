"""`mqproof audit explain`: print all steps of one message."""

from typing import Annotated, Final

import typer

from mqproof.report.model import Exit
from mqproof.report.printable import counted, one_line
from mqproof.spark_audit.command.failures import fail, say
from mqproof.spark_audit.command.opened_session import opened_session
from mqproof.spark_audit.command.option_groups import IndexSlots, SparkOptions, Trace, examples

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
    index_slots: IndexSlots = None,
    spark_options: SparkOptions,
) -> None:
    """Print all steps of one message from every input, in order of time.

    Exit codes: 0 found; 2 bad input; 3 not found in any input; 4 Spark or Java is missing or failed.
    """
    if not (events or store or trace):
        fail("--events: name at least one event log, folder or pattern, or a --store")

    options = spark_options.session()

    from mqproof.spark_audit.passes.profile import overview
    from mqproof.spark_audit.passes.profile_partition import profile
    from mqproof.spark_audit.reporting.explain import ids_of_broker_id, message_steps
    from mqproof.spark_audit.sources.index import SLOTS
    from mqproof.spark_audit.sources.inputs import InputError, Inputs, find_files
    from mqproof.spark_audit.sources.read import read_files
    from mqproof.spark_audit.sources.spark_stores import read_stores
    from mqproof.spark_audit.sources.store_tables import name_stores
    from mqproof.spark_audit.sources.traces import find_traces, read_traces

    try:
        found = find_files(events) if events else Inputs(())
        stores = name_stores(store or [])
        traces = find_traces(trace or [])
        with opened_session(options) as (spark, scratch):
            given = {"file": found.files, "store": stores, "trace input": [*traces[0], *traces[1]]}
            say("reading " + ", ".join(counted(len(each), what) for what, each in given.items() if each))
            event_log = read_files(spark, found, scratch).event_log
            stored = read_stores(spark, stores, scratch, index_slots or SLOTS) if stores else None
            traced = read_traces(spark, *traces).records if any(traces) else None
            brokers = overview(profile(event_log)).brokers
            found_steps = message_steps(spark, [msg_id], event_log.rows, brokers, stored, traced)
            if not found_steps and stored and (named := ids_of_broker_id(msg_id, stored)):
                say(f"the broker's id {msg_id} is of {', '.join(named)}")
                found_steps = message_steps(spark, named, event_log.rows, brokers, stored, traced)
    except InputError as error:
        fail(str(error))
    if not found_steps:
        fail(f"{msg_id}: no input knows this message", Exit.INCONCLUSIVE)
    for steps in found_steps.values():
        for step in steps:
            typer.echo(one_line(step.line()))
