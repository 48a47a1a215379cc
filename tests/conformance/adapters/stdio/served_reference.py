"""An adapter process around the reference, and its broken variants: `python -m ... [DEFECT [AT]]`.

The defect shows in the answer to the request with number AT.
"""

import inspect
import json
import sys
import time
from collections.abc import Callable
from typing import Any, get_type_hints

from mqproof.conformance.adapters.brokers.factories import EXAMINEES
from mqproof.conformance.adapters.reference import ReferenceTarget
from mqproof.conformance.adapters.stdio.wire_values import from_json, to_json
from mqproof.conformance.engine.targets import TargetError
from mqproof.conformance.suites.flush.target import RestartFailedError, Target

DEFECTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "no-json": lambda _: "log line",
    "other-id": lambda answer: json.dumps({**answer, "id": answer["id"] + 1}),
    "both": lambda answer: json.dumps({**answer, "error": {"kind": "target", "message": "x"}}),
    "neither": lambda answer: json.dumps({"id": answer["id"]}),
    "unknown-field": lambda answer: json.dumps({**answer, "x": 1}),
    "wrong-type": lambda answer: json.dumps({**answer, "result": "seven"}),
    "unknown-kind": lambda answer: json.dumps({"id": answer["id"], "error": {"kind": "x", "message": "y"}}),
    "target-error": lambda answer: json.dumps(
        {"id": answer["id"], "error": {"kind": "target", "message": "the broker\nis gone"}}
    ),
}


def serve(defect: str, at: int) -> None:
    target: Any = None
    protocol: type[Any] = Target
    make: Any = ReferenceTarget
    for line in sys.stdin:
        request = json.loads(line)
        method, arguments = request["method"], request["args"]
        answer: dict[str, Any] = {"id": request["id"]}
        if request["id"] == at:
            if defect == "end":
                print("out of coffee", file=sys.stderr)
                raise SystemExit(7)
            if defect == "silence":
                time.sleep(3600)
        if method == "hello":
            suite = arguments["suite"]
            if suite not in ("flush", *EXAMINEES):
                answer["error"] = {"kind": "unsupported", "message": "not built yet"}
            else:
                if suite != "flush":
                    protocol, make = EXAMINEES[suite].protocol, EXAMINEES[suite].reference
                target = make()
                answer["result"] = {"protocol": 1, "capabilities": to_json(target.capabilities)}
        else:
            if method == "open":
                target = make()
            try:
                answer["result"] = to_json(_call(target, protocol, method, arguments))
            except RestartFailedError as error:
                answer["error"] = {"kind": "restart_failed", "message": str(error)}
            except TargetError as error:
                answer["error"] = {"kind": "target", "message": str(error)}
        is_wrong = request["id"] == at and defect in DEFECTS
        print(DEFECTS[defect](answer) if is_wrong else json.dumps(answer), flush=True)


def _call(target: Any, protocol: type[Any], method: str, arguments: dict[str, Any]) -> Any:
    declared = getattr(protocol, method)
    if isinstance(declared, property):
        return getattr(target, method)
    hints = get_type_hints(declared)
    names = list(inspect.signature(declared).parameters)[1:]
    return getattr(target, method)(*(from_json(arguments[name], hints[name], name) for name in names))


if __name__ == "__main__":
    serve(sys.argv[1] if sys.argv[1:] else "", int(sys.argv[2]) if sys.argv[2:] else 0)
