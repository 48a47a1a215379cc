"""What the machines of all suites have alike: one example, from its first step to its judge."""

import sys
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from mqproof.conformance.engine.targets import TargetError

SessionT = TypeVar("SessionT")


class Closable(Protocol):
    def close(self) -> None: ...


TargetT = TypeVar("TargetT", bound=Closable)


class UndrivableError(BaseException):
    """Ends the search at once. No Exception: Hypothesis would take it for one more failure, and run the
    example again and again on a target that is gone."""

    def __init__(self, error: TargetError) -> None:
        super().__init__(str(error))
        self.error = error


class Machine(RuleBasedStateMachine, Generic[TargetT, SessionT]):
    """One example of one target. `judge` gets the session at the end of an example that nothing interrupted,
    and raises if it is displeased.

    A suite's machine has rules, each one step of a session, and an initialize rule that makes the session.
    The one with the fewest arguments is the simplest to Hypothesis: it must be possible at any time, or the
    run that it takes for the simplest of all is never made smaller.
    """

    session: SessionT

    def __init__(self, target: TargetT, judge: Callable[[SessionT], None]) -> None:
        super().__init__()
        self.target = target
        self._judge = judge

    def last_look(self) -> None:
        """What the session is asked for at the end of every whole example."""

    def teardown(self) -> None:
        """Take the last look, free the target, and judge.

        Raises:
            UndrivableError: the example ended because the target could not be driven.
        """
        interrupted = sys.exc_info()[1]
        whole = interrupted is None and hasattr(self, "session")
        try:
            try:
                if whole:
                    self.last_look()
            finally:
                self.target.close()
        except TargetError as error:
            # What came first says why; a target that is gone may not even be closed.
            interrupted = interrupted or error
        if isinstance(interrupted, TargetError):
            raise UndrivableError(interrupted)
        if whole:
            self._judge(self.session)
