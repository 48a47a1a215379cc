"""OpenTelemetry spans of messaging clients as export requests, written by the semantic conventions alone."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

BEGIN_US = 1_795_574_419_000_000


def attributes(**values: str | int | None) -> list[dict[str, Any]]:
    """Return attributes; `__` in a name is a dot. Whole numbers are texts, as OTLP has them in JSON."""
    return [
        {
            "key": name.replace("__", "."),
            "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value},
        }
        for name, value in values.items()
        if value is not None
    ]


def span(
    operation: str,
    message_id: str | None,
    second: float,
    *,
    trace: str = "t",
    group: str | None = None,
    topic: str = "Orders",
    failed: bool = False,
    links: Sequence[str] = (),
    linked_ids: Sequence[str] = (),
    state: str = "",
    system: str = "rocketmq",
    **more: str | int | None,
) -> dict[str, Any]:
    start_us = BEGIN_US + round(second * 1e6)
    return {
        "traceId": trace,
        "spanId": "00f067aa0ba902b7",
        "traceState": state,
        "name": f"{operation} {topic}",
        "kind": 4,
        "startTimeUnixNano": str(start_us * 1000),
        "endTimeUnixNano": str(start_us * 1000 + 2_000_000),
        "attributes": attributes(
            messaging__system=system,
            messaging__operation__type=operation,
            messaging__destination__name=topic,
            messaging__message__id=message_id,
            messaging__consumer__group__name=group,
            **more,
        ),
        "status": {"code": 2} if failed else {},
        "links": [
            *({"traceId": each, "spanId": "1"} for each in links),
            *(
                {"traceId": trace, "attributes": attributes(messaging__message__id=each)}
                for each in linked_ids
            ),
        ],
    }


def request(spans: Iterable[dict[str, Any]]) -> str:
    resource = {"attributes": attributes(service__name="shop")}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]})


def write(path: Path, *requests: Iterable[dict[str, Any]], rest: str = "") -> Path:
    path.write_text("".join(request(spans) + "\n" for spans in requests) + rest)
    return path


def exchange(
    number: int, *, lost: Iterable[int] = (), group: str = "billing", same_trace: bool = True
) -> list[dict[str, Any]]:
    """Return the spans of messages m0, m1 ..., one a second, of which some have no delivery."""
    found = []
    for n in range(number):
        found.append(span("send", f"m{n}", n, trace=f"p{n}"))
        if n not in set(lost):
            trace, links = (f"p{n}", ()) if same_trace else (f"c{n}", ())
            found.append(span("process", f"m{n}", n + 0.5, trace=trace, group=group, links=links))
    return found
