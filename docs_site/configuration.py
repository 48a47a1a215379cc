"""The page of all configuration keys: the broker, the name server, the client library."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from docs_site.field_docs import defaults, field_docs
from docs_site.markdown import code, escaped, table
from mqproof.client import LitePullConfig, ProducerConfig, PullLimits, PushConsumerConfig
from mqproof.impl.broker import config as broker
from mqproof.impl.client.connection.session import SessionConfig
from mqproof.impl.dledger.config import Membership
from mqproof.impl.metrics.config import METRICS_OPTIONS, MetricsConfig
from mqproof.impl.namesrv import config as namesrv
from mqproof.impl.replication.config import ReplicationConfig
from mqproof.impl.runtime.properties import Option, as_text
from mqproof.impl.runtime.security.peer_network import PeerConfig
from mqproof.impl.store.config import StoreConfig

BROKER: Final = (
    ("Broker", broker.BrokerConfig, broker.OPTIONS),
    ("Store", StoreConfig, broker.STORE_OPTIONS),
    ("Master and slave", ReplicationConfig, broker.REPLICATION_OPTIONS),
    ("DLedger group", Membership, broker.MEMBERSHIP_OPTIONS),
    ("Metrics", MetricsConfig, METRICS_OPTIONS),
    ("Peers on the ports of slaves and members", PeerConfig, broker.PEER_OPTIONS),
)
"""Title, configuration class and keys of each part of a broker's properties file."""

CLIENT: Final = (ProducerConfig, PushConsumerConfig, LitePullConfig, PullLimits, SessionConfig)

_UNITS: Final = {"ms": " ms", "bytes": " bytes", "percent": " %", "s": " s"}
"""Maps a part of a field's name to the unit of its value."""

_HEAD: Final = """# Configuration keys

Generated from the configuration classes when the site is built. A default that is empty means that the
key has no value until it is set.
"""

_BROKER: Final = """## Broker keys

`mqproof broker -c FILE` reads these keys from a Java properties file. Keys marked "yes" can also be
changed while the broker runs, with `mqproof admin updateBrokerConfig`. An unknown key is reported and
ignored. [Running a broker](../how-to/broker.md) explains how to choose the values.
"""

_NAMESRV: Final = """## Name server keys

`mqproof namesrv -c FILE` reads these keys. Keys marked "yes" can also be changed while the name server
runs, with `mqproof admin updateNamesrvConfig`. The keys of the section "Metrics" are valid here, too.
"""

_CLIENT: Final = """## Client configuration

These classes are arguments of the client library; they have no properties file. [The Python API](api.md)
shows where each one is used.
"""


def page() -> str:
    """Return the page as Markdown."""
    parts = [_HEAD, _BROKER]
    for title, part, options in BROKER:
        parts += [f"### {title}\n", _keys(part, options, broker.RUNNING_KEYS)]
    parts += [_NAMESRV, _keys(namesrv.NameServerConfig, namesrv.OPTIONS, namesrv.RUNNING_OPTIONS)]
    parts.append(_CLIENT)
    for kind in CLIENT:
        parts += [f"### {kind.__name__}\n", table(["field", "default", "meaning"], _fields(kind))]
    return "\n".join(parts)


def meaning(part: type, field: str) -> str:
    """Return the description of a field, without the name of its property."""
    text = re.sub(r"^The property \w+(?: of [\d.]+x)?(?:, in hours)?: ", "", field_docs(part)[field])
    return text[:1].upper() + text[1:]


def _keys(part: type, options: Mapping[str, Option], running: Any) -> str:
    known = defaults(part)
    return table(
        ["key", "default", "while running", "meaning"],
        (
            [
                code(key),
                _default(known[option.field], option),
                "yes" if key in running else "",
                escaped(_with_keys(meaning(part, option.field), options)),
            ]
            for key, option in options.items()
        ),
    )


def _default(value: Any, option: Option) -> str:
    """The default as a file has it, with its unit."""
    if value in (None, "", ()):
        return ""
    shown = code(option.show(value))
    if option.show is not as_text:
        return shown
    return shown + next((unit for part, unit in _UNITS.items() if part in option.field.split("_")), "")


def _with_keys(text: str, options: Mapping[str, Option]) -> str:
    """The text with keys of the file instead of fields of the class."""
    for key, option in options.items():
        text = text.replace(code(option.field), code(key))
    return re.sub(r"\bNone\b", "No value", text)


def _fields(part: type) -> Iterator[list[str]]:
    known = defaults(part)
    for name in field_docs(part):
        yield [code(name), code(_shown(known[name])), escaped(meaning(part, name))]


def _shown(value: Any) -> str:
    if callable(value):
        return str(value.__name__)
    return str(value) if hasattr(value, "value") else repr(value)
