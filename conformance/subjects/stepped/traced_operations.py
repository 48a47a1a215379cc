"""A producer and the calls of a listener, with their traces, as a target for behaviours of Tracing.

The script answers each send, and plays the trace topic. A batch is sent when the script says so.
"""

from collections.abc import Mapping
from typing import Any, Final

from mqproof.conformance.behaviours.corpus import Script, Stimulus, Variables, bounded
from mqproof.conformance.behaviours.json_values import plain
from mqproof.conformance.behaviours.subject import DeviationError
from mqproof.conformance.subjects.stepped.step_loop import StepLoop
from mqproof.conformance.subjects.stepped.traced_client import TracedClient
from mqproof.reference.tracing import Config, Traces

_FAILURES: Final = ("refused", "error")


class SteppedTracing:
    """Drives a client through a behaviour of Tracing.

    Names of variables and actions are those of Tracing.tla.
    """

    def open(self, script: Script) -> None:
        self._steps = script.steps
        self._config: Config = bounded("Tracing", script.configuration)
        self._loop = StepLoop("mqproof.impl.client")
        self._run = self._loop.run
        self._client = self._run(self._made())
        self._calls = dict.fromkeys(self._config.calls, "new")
        self._begun: set[str] = set()
        self._topic: Traces = frozenset()
        self._is_crashed = self._is_stopping = False

    def take(self, at: int) -> None:
        step = self._steps[at]
        try:
            self._run(_ACTIONS[step.action](self, at, *step.parameters))
        except RuntimeError as error:  # a trace must not end what is traced
            raise DeviationError(f"{step.action} fails: {error}") from error

    def look(self) -> Variables:
        if self._is_crashed:
            return {"topic": plain(self._topic)}
        sends = [
            "new" if each not in self._begun else self._client.outcome(each) for each in self._config.sends
        ]
        return {
            "outcome": [*sends, *self._calls.values()],
            "waiting": plain(self._client.waiting),
            "batch": plain(self._client.batch),
            "topic": plain(self._topic),
            "dropped": self._client.dropped,
        }

    def refuses(self, step: Stimulus) -> bool:
        """Let time pass where no batch may begin; the client goes on sending while it stops."""
        if step.action != "Take" or self._is_crashed or self._is_stopping:
            return False
        self._run(self._client.take())
        return True

    def close(self) -> None:
        self._loop.close()

    async def _made(self) -> TracedClient:
        return TracedClient(self._loop.runtime, self._config.waiting_max)

    # Actions

    async def _begin(self, _: int, operation: str) -> None:
        if operation in self._calls:
            self._client.begin_call(operation)
            self._calls[operation] = "running"
        else:
            await self._client.begin_send(operation)
            self._begun.add(operation)

    async def _end(self, _: int, operation: str, how: str) -> None:
        if operation in self._calls:
            self._client.end_call(operation, how)
            self._calls[operation] = how
        else:
            await self._client.end_send(operation, how)

    async def _take(self, _: int) -> None:
        await self._client.take()
        if not self._client.batch:
            raise DeviationError("no batch is sent")

    async def _store(self, _: int) -> None:
        self._topic |= self._client.batch

    async def _settle(self, at: int, succeeds: bool) -> None:
        await self._client.settle("stored" if succeeds else _FAILURES[at % 2])

    async def _stop(self, _: int) -> None:
        self._is_stopping = True
        await self._client.stop()

    async def _stopped(self, _: int) -> None:
        if not await self._client.stopped():
            raise DeviationError("the client does not stop")

    async def _crash(self, _: int) -> None:
        self._is_crashed = True


_ACTIONS: Final[Mapping[str, Any]] = {
    "Begin": SteppedTracing._begin,
    "End": SteppedTracing._end,
    "Take": SteppedTracing._take,
    "Store": SteppedTracing._store,
    "Settle": SteppedTracing._settle,
    "Stop": SteppedTracing._stop,
    "Stopped": SteppedTracing._stopped,
    "Crash": SteppedTracing._crash,
}
