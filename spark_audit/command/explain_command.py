"""`mqproof audit explain`: print the whole life of one message."""

from typing import Annotated, Final

import typer

from mqproof.report.model import Exit
from mqproof.report.printable import counted, one_line
from mqproof.spark_audit.command.failures import fail, say
from mqproof.spark_audit.command.opened_session import opened_session
from mqproof.spark_audit.command.options import IndexSlots, SparkOptions, Trace, examples

EXAMPLES: Final = examples(
    "explain 7F0000012A9C00000000000000000100 --events build/log --store broker-a=/var/rocketmq/store"
)


def explain_message(
    *,
    msg_id: Annotated[
        str, typer.Argument(help="The producer's unique key; of what a --store has, the broker's id will do.")
    ],
    events: Annotated[
        list[str] | None, typer.Option(help="Event log, folder or pattern, as for audit run.")
    ] = None,
    store: Annotated[
        list[str] | None, typer.Option(help="Store directory of a broker, DIR or BROKER=DIR.")
    ] = None,
    trace: Trace = None,
    index_slots: IndexSlots = None,
    spark_options: SparkOptions,
) -> None:
    """Print the whole life of one message: what every input says of it, in order of time.

    Exit code: 0 some input knows it, 2 bad input, 3 none does, 4 Spark or Java is missing or failed.
    """
    if not (events or store or trace):
        fail("--events: name at least one event log, folder or pattern, or a --store")

    options = spark_options.session()

    from mqproof.spark_audit.passes.profile import overview, profile
    from mqproof.spark_audit.reporting.explain import at_brokers_id, lives
    from mqproof.spark_audit.sources.inputs import InputError, Inputs, find_files
    from mqproof.spark_audit.sources.read import read_files
    from mqproof.spark_audit.sources.store_tables import name_stores, read_stores
    from mqproof.spark_audit.sources.stores import SLOTS
    from mqproof.spark_audit.sources.traces import find_traces, read_traces

    try:
        found = find_files(events) if events else Inputs(())
        stores = name_stores(store or [])
        traces = find_traces(trace or [])
        with opened_session(options) as (spark, scratch):
            given = {"file": found.files, "store": stores, "trace input": [*traces[0], *traces[1]]}
            say("reading " + ", ".join(counted(len(each), what) for what, each in given.items() if each))
            told = read_files(spark, found, scratch).told
            stored = read_stores(spark, stores, scratch, index_slots or SLOTS) if stores else None
            traced = read_traces(spark, *traces).told if any(traces) else None
            brokers = overview(profile(told)).brokers
            lived = lives(spark, [msg_id], told.rows, brokers, stored, traced)
            if not lived and stored and (named := at_brokers_id(msg_id, stored)):
                say(f"what a broker calls {msg_id} is {', '.join(named)}")
                lived = lives(spark, named, told.rows, brokers, stored, traced)
    except InputError as error:
        fail(str(error))
    if not lived:
        fail(f"{msg_id}: no input knows this message", Exit.INCONCLUSIVE)
    for steps in lived.values():
        for step in steps:
            typer.echo(one_line(step.line()))
