"""The base class of the machines of all suites: one example, from its first step to its judgement."""

import sys
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from mqproof.conformance.engine import time_bounds
from mqproof.conformance.engine.targets import EndlessError, InternalError, TargetError

SessionT = TypeVar("SessionT")


class Closable(Protocol):
    def close(self) -> None: ...


TargetT = TypeVar("TargetT", bound=Closable)


class UndrivableError(BaseException):
    """Ends the search at once, because the target cannot be driven.

    It is not an Exception: Hypothesis would treat an Exception as one more failure and would run the example
    repeatedly on a target that no longer works.
    """

    def __init__(self, error: TargetError) -> None:
        super().__init__(str(error))
        self.error = error


class EndlessExampleError(BaseException):
    """Ends the search at once, because an operation of the target never ends, and each repetition would not.

    It is not an Exception, as UndrivableError.
    """

    def __init__(self, session: object, why: str) -> None:
        super().__init__(why)
        self.session = session
        self.why = why


class Machine(RuleBasedStateMachine, Generic[TargetT, SessionT]):
    """One example, run on one target.

    `judge` receives the session at the end of each example that was not interrupted, and raises if it finds a
    violation.

    A suite's machine has one rule for each step of a session, and an initialize rule that creates the
    session. Hypothesis treats the rule with the fewest arguments as the simplest one. That rule must always
    be possible; otherwise Hypothesis cannot shrink the run that it considers the simplest.
    """

    session: SessionT
    scenario: Callable[[SessionT], None] | None = None
    """Performed after the last look at an uninterrupted example, if there is one."""

    def __init__(self, target: TargetT, judge: Callable[[SessionT], None]) -> None:
        super().__init__()
        self.target = target
        self._judge = judge
        time_bounds.start(time_bounds.EXAMPLE_SECONDS_MAX, time_bounds.EXAMPLE_REAL_SECONDS_MAX)

    def last_look(self) -> None:
        """Make the final observations of the session, at the end of every uninterrupted example."""

    def teardown(self) -> None:
        """Make the final observations, close the target, and judge the session.

        Raises:
            UndrivableError: the example ended because the target could not be driven.
            EndlessExampleError: an operation of the target never ends.
        """
        interrupted = sys.exc_info()[1]
        whole = interrupted is None and hasattr(self, "session")
        try:
            try:
                if whole:
                    self.last_look()
                    if self.scenario:
                        self.scenario(self.session)
                    if read_back := getattr(self.target, "read_back", None):
                        read_back()
            finally:
                self.target.close()
        except (TargetError, EndlessError, InternalError, time_bounds.OutOfTimeInterrupt) as error:
            # The first error shows the cause: closing a target that no longer works may fail too.
            interrupted = interrupted or error
        finally:
            time_bounds.stop()
        self._end_the_search(interrupted)
        if whole:
            self._judge(self.session)

    def _end_the_search(self, interrupted: BaseException | None) -> None:
        """Raise if a target that cannot be driven, or that never ends, interrupted the example."""
        if isinstance(interrupted, TargetError):
            raise UndrivableError(interrupted)
        if isinstance(interrupted, EndlessError | InternalError | time_bounds.OutOfTimeInterrupt):
            if not hasattr(self, "session"):
                raise UndrivableError(TargetError(f"the target does not start: {interrupted}"))
            raise EndlessExampleError(self.session, str(interrupted))
