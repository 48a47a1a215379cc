"""The configuration of brokers inside a test: properties that the test may set, and small files in memory."""

from collections.abc import Mapping, Set
from typing import Final

from mqproof.impl.broker.config import BrokerConfig, read
from mqproof.impl.runtime.properties import ConfigError

ALWAYS_SET: Final = frozenset({"listenPort", "namesrvAddr", "storePathRootDir", "brokerIP1"})
"""Properties that brokers inside a test always set themselves."""

_IN_MEMORY: Final = {
    "mappedFileSizeCommitLog": str(8 << 20),
    "mappedFileSizeConsumeQueue": "60000",
    "maxHashSlotNum": "5000",
    "maxIndexNum": "20000",
}
"""Small files, which are made in a tenth of the time that those of a broker in production need."""


def broker_config(properties: Mapping[str, str], own: Set[str], *, in_memory: bool) -> BrokerConfig:
    """Return the configuration with these properties.

    Raises:
        ConfigError: an unknown key, a key of `own`, which the broker sets itself, or a wrong value.
    """
    if refused := sorted(own & properties.keys()):
        raise ConfigError(f"property {refused[0]}: the embedded broker sets it itself")
    given = {**(_IN_MEMORY if in_memory else {}), **properties}
    config, unknown = read("".join(f"{key}={value}\n" for key, value in given.items()), "properties")
    if unknown:
        raise ConfigError(f"property {unknown[0]}: not a key of a broker's properties file")
    return config
