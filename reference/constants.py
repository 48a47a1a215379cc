"""Reads the constants of a TLC configuration as Python values, from which a model makes its configuration."""

from typing import Any

from mqproof.spec.tlc import config as tlc_config
from mqproof.spec.tlc import values


def constants(config_text: str) -> dict[str, Any]:
    """Return the constants that the configuration gives as values, one per line: `Messages = {"m1"}`."""
    found: dict[str, Any] = {}
    for body in tlc_config.parse(config_text).of("CONSTANT"):
        for line in filter(None, map(str.strip, body.splitlines())):
            name, equals, text = line.partition("=")
            if equals:
                found[name.strip()] = values.parse(text.strip())
    return found
