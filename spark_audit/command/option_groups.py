"""The groups of options that several commands share."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mqproof.spark_audit.command.failures import fail

if TYPE_CHECKING:
    from mqproof.spark_audit.runtime.session import SessionOptions
    from mqproof.spark_audit.sources.broker_config import BrokerConfig

REBALANCE_S: Final = 20
LOCAL_MASTER: Final = "local[2]"
MEMORY: Final = "2g"
FORGET_DAYS: Final = 30
DAY_US: Final = 86_400_000_000

IndexSlots = Annotated[
    int | None, typer.Option(min=1, help="maxHashSlotNum of the brokers, if it is not RocketMQ's default.")
]
Spanned = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="OpenTelemetry spans: OTLP JSON lines or Parquet, or a folder."),
]

Metrics = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write metrics in Prometheus' text format to this file."),
]

Trace = Annotated[
    list[str] | None,
    typer.Option(help="Message traces: exported text, a folder of it, or a store that has their topic."),
]
ForgetDays = Annotated[
    int, typer.Option(min=1, help="Days after which a silent client or group is forgotten.")
]


def check_memory(memory: str) -> None:
    """Fail unless it is a number with a unit."""
    if not re.fullmatch(r"[1-9]\d*[kmgt]", memory, re.IGNORECASE):
        fail(f"--memory: {memory!r}, expected a number and a unit, e.g. 2g")


def examples(*commands: str) -> str:
    """Return the end of a command's help text."""
    return "\n\n".join(("Examples:", *(f"  mqproof audit {command}" for command in commands)))


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Where Spark runs."""

    master: Annotated[str | None, typer.Option(help="Spark master.", show_default="local[2]")] = None
    memory: Annotated[
        str | None, typer.Option(help="Memory of the Spark driver, or of DuckDB.", show_default=MEMORY)
    ] = None
    conf: Annotated[
        list[str] | None, typer.Option(help="Setting of Spark, KEY=VALUE, e.g. spark.local.dir=/big.")
    ] = None

    def given(self) -> list[str]:
        """Return the given options that only Spark serves."""
        return [name for name, value in (("--master", self.master), ("--conf", self.conf)) if value]

    def settings(self) -> dict[str, str]:
        settings = {}
        for text in self.conf or []:
            key, separator, value = text.partition("=")
            if not (separator and key.startswith("spark.")):
                fail(f"--conf: {text!r}, expected KEY=VALUE of Spark, e.g. spark.local.dir=/big")
            settings[key] = value
        return settings

    def session(self, input_bytes: int = 0, text_bytes: int = 0) -> "SessionOptions":
        from mqproof.spark_audit.runtime.session import SessionOptions

        return SessionOptions(
            master=self.master or LOCAL_MASTER,
            memory=self.memory or MEMORY,
            input_bytes=input_bytes,
            text_bytes=text_bytes,
            conf=self.settings(),
        )


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The user's statements about clocks, brokers and groups."""

    skew_ms: Annotated[
        int | None,
        typer.Option(
            min=0, help="Allowed difference of two nodes' clocks; default: 100, or more if the log shows it."
        ),
    ] = None
    flush: Annotated[
        str | None, typer.Option(help="SYNC_FLUSH or ASYNC_FLUSH: for brokers whose log does not state it.")
    ] = None
    broadcast: Annotated[
        list[str] | None,
        typer.Option("--broadcast-group", help="Group in which every member receives every message."),
    ] = None
    orderly: Annotated[
        list[str] | None,
        typer.Option("--orderly-group", help="Group that consumes in order but does not report so."),
    ] = None
    subscription: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GROUP:TOPIC=TAGS",
            help="Subscription that the log does not state, e.g. 'g:t=TagA || TagB'; '*:*=*' for all.",
        ),
    ] = None
    delays: Annotated[
        str | None,
        typer.Option(help="The brokers' messageDelayLevel, if it is not RocketMQ's default: '1s 5s 1m'."),
    ] = None
    rebalance_s: Annotated[
        int,
        typer.Option(
            min=0, help="Time that a group may take to agree on owners after a member joined or left."
        ),
    ] = REBALANCE_S
    broker_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The brokers' properties, or JSON: messageDelayLevel, flushDiskType, maxHashSlotNum.",
        ),
    ] = None

    def config(self) -> "BrokerConfig":
        from mqproof.spark_audit.sources.broker_config import BrokerConfig, read_config
        from mqproof.spark_audit.sources.inputs import InputError

        try:
            return read_config(self.broker_config) if self.broker_config else BrokerConfig()
        except InputError as error:
            fail(str(error))

    def allowed(self, config: "BrokerConfig") -> dict[str, Any]:
        """Return the values for evidence.Options; options take precedence over the broker's configuration."""
        from mqproof.spark_audit.command.stated_subscriptions import parse_subscriptions
        from mqproof.spark_audit.sources.broker_config import FLUSH_MODES, parse_delays
        from mqproof.spark_audit.sources.inputs import InputError

        if self.flush not in (None, *FLUSH_MODES):
            fail(f"--flush: {self.flush!r}, expected {' or '.join(FLUSH_MODES)}")
        try:
            subscriptions = parse_subscriptions(self.subscription or ())
            ladder = parse_delays(self.delays, "--delays") if self.delays is not None else config.delays_ms
        except InputError as error:
            fail(str(error))
        return {
            "flush": self.flush or config.flush,
            "broadcast": tuple(self.broadcast or ()),
            "orderly": tuple(self.orderly or ()),
            "subscriptions": subscriptions,
            "rebalance_us": self.rebalance_s * 1_000_000,
            **({} if ladder is None else {"delays_ms": ladder}),
            **({} if self.skew_ms is None else {"skew_us": self.skew_ms * 1000, "is_skew_given": True}),
        }

    def given(self) -> dict[str, Any]:
        """Return the given options by their names on the command line."""
        return {
            "--skew-ms": self.skew_ms,
            "--flush": self.flush,
            "--broadcast-group": self.broadcast,
            "--orderly-group": self.orderly,
            "--subscription": self.subscription,
            "--delays": self.delays,
            "--rebalance-s": self.rebalance_s if self.rebalance_s != REBALANCE_S else None,
            "--broker-config": self.broker_config,
        }
