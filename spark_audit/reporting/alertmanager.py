"""Violations as alerts for Prometheus' Alertmanager (API version 2)."""

import json
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from mqproof.report.printable import counted
from mqproof.spark_audit.reporting.explain import utc

NAME: Final = "MqproofAuditViolation"
WITNESSES_MAX: Final = 3
"""Maximum number of messages that an alert names."""
_LABELS: Final = ("invariant", "rule", "severity", "topic", "group", "broker")
_SECONDS_MAX: Final = 10.0
_TEXT_MAX: Final = 500


def is_address(url: str) -> bool:
    """Return whether this is the address of a web server."""
    parts = urlsplit(url)
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def alerts(violations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one alert for each invariant, rule, topic, group and broker of the violations.

    Alertmanager recognises an alert by its labels. So the messages are in the annotations.
    """
    by_labels: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for violation in violations:
        key = tuple("" if violation[name] is None else str(violation[name]) for name in _LABELS)
        by_labels.setdefault(key, []).append(violation)
    return [_alert(key, same) for key, same in by_labels.items()]


def _alert(key: Sequence[str], same: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    labels = {name: value for name, value in zip(_LABELS, key, strict=True) if value}
    times = [violation["first_ts"] for violation in same if violation["first_ts"] is not None]
    ids = [str(violation["msg_id"]) for violation in same[:WITNESSES_MAX] if violation["msg_id"] is not None]
    more = f" and {len(same) - len(ids)} more" if len(same) > len(ids) else ""
    annotations = {
        "summary": f"{labels['invariant']} {labels['rule']}: {counted(len(same), 'violation')}",
        "description": str(same[0]["evidence"] or "")[:_TEXT_MAX],
        **({"messages": (", ".join(ids) + more)[:_TEXT_MAX]} if ids else {}),
    }
    alert = {"labels": {"alertname": NAME, **labels}, "annotations": annotations}
    return alert | ({"startsAt": utc(min(times)).replace(" ", "T") + "Z"} if times else {})


def post(url: str, sent: Sequence[Mapping[str, Any]]) -> None:
    """Send alerts to Alertmanager, or to a program that takes the same requests.

    Raises:
        OSError: it cannot be reached, or refuses them.
    """
    request = urllib.request.Request(
        url, json.dumps(sent).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=_SECONDS_MAX):
        pass
