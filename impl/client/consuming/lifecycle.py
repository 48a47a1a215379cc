"""Whether a consumer is started. Using it before its start or after its stop is an error of the caller."""

from mqproof.impl.client.model import ClientError


class Lifecycle:
    """The state of one consumer: created, started or stopped. It never starts again."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._state = "not started"

    @property
    def is_started(self) -> bool:
        return self._state == "started"

    def require_new(self) -> None:
        """Raises ClientError if the consumer was started before."""
        if self._state != "not started":
            raise ClientError(f"{self._name} is {self._state}, and can be started only once")

    def start(self) -> None:
        """Raises ClientError unless this is the first start."""
        self.require_new()
        self._state = "started"

    def stop(self) -> bool:
        """Stop the consumer; return False if it was stopped already. Raises ClientError before the start."""
        if self._state == "not started":
            raise ClientError(f"{self._name} is not started, so it cannot be stopped")
        was_started = self.is_started
        self._state = "stopped"
        return was_started

    def require_started(self) -> None:
        """Raises ClientError unless the consumer is started."""
        if not self.is_started:
            raise ClientError(
                f"{self._name} is {self._state}: use it between start and stop, or in `async with`"
            )
