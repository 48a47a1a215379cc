"""Replicates entries from the leader to its followers, and decides when they are committed."""

from collections import deque
from collections.abc import Callable
from typing import Final

from mqproof.impl.dledger import rules
from mqproof.impl.dledger.changes import Kept, Lacks
from mqproof.impl.dledger.codes import PushType, ResponseCode
from mqproof.impl.dledger.config import GroupConfig
from mqproof.impl.dledger.rpc_bodies import NO_INDEX, Entry, PushRequest, PushResponse
from mqproof.impl.dledger.state import Role, State

_NEVER: Final = float("inf")
_EARLY_BYTES_MAX: Final = 16 << 20
"""The maximum size of early pushes that a follower keeps. A connection preserves order, so there are few."""
_EARLY_MAX: Final = 1000


class _Progress:
    """The state of one follower, as its leader knows it in its term."""

    def __init__(self, next_index: int) -> None:
        self.next = next_index
        """The index of the entry to push next."""
        self.watermark = NO_INDEX
        """The follower's log is known to equal the leader's, durably, up to this index."""
        self.matched = NO_INDEX
        """The follower's log was found to equal the leader's, durable or not, up to this index."""
        self.is_comparing = next_index > 0
        """Whether the point where the two logs diverge is still unknown."""
        self.comparing: PushRequest | None = None
        self.pushes: deque[PushRequest] = deque()
        """Unanswered pushes since the logs were compared, in order.

        Responses to older pushes add no information.
        """
        self.resend_at: float
        """When the logs are compared again, if no response arrives; set by each request that expects one."""
        self.is_lost = False
        """Whether it was found to lack entries that the leader has deleted."""
        self.confirmed_commit = NO_INDEX
        """The committed index that the follower has confirmed."""
        self.confirmed_kept = NO_INDEX
        """The `kept_by_all` that the follower has confirmed."""
        self.idle_since: float
        """When the last request was sent."""

    @property
    def base(self) -> int:
        """The index after which pushes are unanswered."""
        return max(self.watermark, self.matched)

    @property
    def is_awaited(self) -> bool:
        """Whether a response is pending or was lost."""
        return self.comparing is not None or bool(self.pushes)


class Leading:
    """The leader's side of replication."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._config: GroupConfig = state.config
        self._followers: dict[str, _Progress] = {}
        self._term: int | None = None
        """The term in which it began to lead."""

    @property
    def is_leading(self) -> bool:
        return self._state.role is Role.LEADER and self._term == self._state.term

    def lag(self, member: str) -> int:
        """Return how many entries a follower lags behind, as far as is known."""
        return self._state.terms.end - self._followers[member].watermark

    def deadline(self) -> float:
        if not self.is_leading:
            return _NEVER
        return min((self._due(follower) for follower in self._followers.values()), default=_NEVER)

    def _due(self, follower: _Progress) -> float:
        if follower.is_awaited:
            return follower.resend_at
        if self._has_news_for(follower):
            return follower.idle_since + self._config.commit_idle_ms
        return _NEVER

    def push(self, read: Callable[[int], Entry], now: float) -> None:
        """Send each follower its next requests. `read` returns an entry by its index."""
        if self._state.role is not Role.LEADER:
            return
        if self._term != self._state.term:
            self._begin()
        for peer, follower in self._followers.items():
            if 0 < self._state.terms.begin >= follower.next:  # the entry before it has been deleted
                self._compare_from(follower, follower.next)
            if follower.is_awaited and now >= follower.resend_at:
                at = follower.next if follower.comparing else follower.base + 1
                self._compare_from(follower, at)
            if follower.is_comparing:
                if follower.comparing is None:
                    self._compare(peer, follower, now)
            else:
                self._append(peer, follower, read, now)

    def _begin(self) -> None:
        """Start a new term as leader and discard the state of followers. The newest entry is the no-op."""
        self._followers = {peer: _Progress(self._state.terms.end) for peer in self._config.peers}
        self._term = self._state.term

    def _compare_from(self, follower: _Progress, index: int) -> None:
        """Compare the logs from the entry before `index` on, or from the first entry that still exists."""
        begin = self._state.terms.begin
        follower.next = max(index, begin + 1) if begin else index
        follower.matched = NO_INDEX
        follower.is_comparing = follower.next > 0  # every log agrees before the first entry
        follower.comparing = None
        follower.pushes.clear()

    def _compare(self, peer: str, follower: _Progress, now: float) -> None:
        follower.resend_at = now + self._config.push_timeout_ms
        follower.comparing = self._ask(peer, follower, PushType.COMPARE, (), now)

    def _append(self, peer: str, follower: _Progress, read: Callable[[int], Entry], now: float) -> None:
        while follower.next <= min(self._state.terms.end, follower.base + self._config.window):
            if not follower.is_awaited:
                follower.resend_at = now + self._config.push_timeout_ms
            batch = self._batch(follower.next, read)
            assert batch, f"an empty batch from {follower.next} on"
            follower.pushes.append(self._ask(peer, follower, PushType.APPEND, batch, now))
            follower.next += len(batch)
        is_idle = not follower.is_awaited and now >= follower.idle_since + self._config.commit_idle_ms
        if is_idle and self._has_news_for(follower):
            self._ask(peer, follower, PushType.COMMIT, (), now)

    def _has_news_for(self, follower: _Progress) -> bool:
        state = self._state
        return follower.confirmed_commit < state.commit or follower.confirmed_kept < state.kept_by_all

    def _batch(self, first: int, read: Callable[[int], Entry]) -> tuple[Entry, ...]:
        batch: list[Entry] = []
        size = 0
        for index in range(first, min(first + self._config.batch_entries_max, self._state.terms.end + 1)):
            entry = read(index)
            size += entry.size
            if batch and size > self._config.batch_bytes_max:
                break
            batch.append(entry)
        return tuple(batch)

    def _ask(
        self, peer: str, follower: _Progress, kind: PushType, batch: tuple[Entry, ...], now: float
    ) -> PushRequest:
        before = follower.next - 1
        follower.idle_since = now
        return self._state.ask(
            PushRequest,
            peer,
            type=kind,
            pre_log_index=before,
            pre_log_term=self._state.terms.at(before),
            commit_index=self._state.commit,
            batch_entry=batch,
            total_size=sum(entry.size for entry in batch),
            count=len(batch),
            kept_by_all=self._state.kept_by_all,
        )

    def pushed(self, request: PushRequest, response: PushResponse, now: float) -> None:
        """Handle a follower's response. It counts only in the term of its request."""
        follower = self._followers.get(response.local_id)
        if follower is None or not self._state.term == request.term == response.term:
            return
        if response.index > max(_last(request), follower.next - 1):
            why = f"an acknowledgement of entry {response.index}, which it was not sent"
            self._state.refuse(response.local_id, why)
            return
        match response.code:
            case ResponseCode.SUCCESS:
                self._succeeded(follower, request, response, now)
            case ResponseCode.INCONSISTENT_STATE:
                self._parted(follower, request, response)
            case _:
                pass  # It does not follow yet, or no longer. The request is repeated after the timeout.

    def _succeeded(
        self, follower: _Progress, request: PushRequest, response: PushResponse, now: float
    ) -> None:
        match request.type:
            case PushType.COMPARE if follower.comparing is request:
                follower.matched = request.pre_log_index
                follower.is_comparing = False
                follower.comparing = None
            case PushType.COMMIT:
                follower.confirmed_commit = max(follower.confirmed_commit, request.commit_index)
                follower.confirmed_kept = max(follower.confirmed_kept, request.kept_by_all)
            case PushType.APPEND:
                known = min(request.commit_index, response.index)
                follower.confirmed_commit = max(follower.confirmed_commit, known)
                if response.index > follower.watermark:
                    follower.watermark = response.index
                    while follower.pushes and _last(follower.pushes[0]) <= response.index:
                        follower.pushes.popleft()
                    follower.resend_at = now + self._config.push_timeout_ms
                    self.advance_commit()
            case _:
                pass  # a comparison that was abandoned

    def _parted(self, follower: _Progress, request: PushRequest, response: PushResponse) -> None:
        """Move back to where the two logs may agree: the follower lacks the entry that the push named."""
        if request.type is PushType.COMPARE and follower.comparing is not request:
            return
        if request.type is PushType.APPEND and not any(push is request for push in follower.pushes):
            return  # overtaken by a comparison, or by entries that the follower received since
        if 0 < self._state.terms.begin >= request.pre_log_index:
            self._lacks(response.local_id, follower)
            return
        back = min(request.pre_log_index, response.end_index + 1)
        if response.x_index >= 0:
            back = min(back, max(response.x_index, follower.watermark + 1))
        self._compare_from(follower, max(0, back))

    def _lacks(self, member: str, follower: _Progress) -> None:
        """Record that the leader no longer has the entries that would continue the follower's log.

        The follower is asked again later, because an operator may have repaired it.
        """
        if not follower.is_lost:
            follower.is_lost = True
            self._state.changes.append(Lacks(member, self._state.terms.begin))

    def advance_commit(self) -> None:
        """Commit the entries that a quorum has durably, if the last of them is of this term."""
        state = self._state
        kept = [state.durable, *(follower.watermark for follower in self._followers.values())]
        index = rules.majority_index(kept)
        if rules.may_commit(state.terms.at(index), state.term):
            state.commit_to(index)
        state.kept_by_all = max(state.kept_by_all, min(*kept, state.commit))


class Following:
    """The follower's side of replication."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._held: list[tuple[int, PushRequest]] = []
        """Pushes whose last entry is not durable yet, by the index of that entry.

        They are answered when it is.
        """
        self._matched = NO_INDEX
        """The log is known to equal the leader's up to this index."""
        self._early: dict[int, PushRequest] = {}
        """Pushes that arrived before their predecessor, by the index of the entry before their first one."""
        self._early_bytes = 0
        self._of: tuple[int, str | None] | None = None
        """The term and leader to which this state belongs."""

    def handle(self, request: PushRequest) -> None:
        state = self._state
        if (refusal := self._refusal(request)) is not None:
            self._answer(request, refusal)
            return
        if self._of != (state.term, state.leader):
            self._of, self._matched, self._held = (state.term, state.leader), NO_INDEX, []
            self._forget_early()
        if request.type is PushType.COMMIT:
            self._learn_commit(request)
            self._answer(request, ResponseCode.SUCCESS)
        elif request.type is PushType.APPEND and request.pre_log_index > state.terms.end:
            self._keep_early(request)  # without a response: the leader repeats its request in time
        elif not state.terms.agrees(request.pre_log_index, request.pre_log_term):
            self._answer(request, ResponseCode.INCONSISTENT_STATE, **self._conflict(request))
        elif request.type is PushType.COMPARE:
            self._forget_early()
            self._matched = max(self._matched, request.pre_log_index)
            self._learn_commit(request)
            self._answer(request, ResponseCode.SUCCESS, index=request.pre_log_index)
        elif (why := self._unacceptable(request)) is not None:
            state.refuse(request.local_id, f"a push: {why}")
            self._answer(request, ResponseCode.UNEXPECTED_ARGUMENT)
        else:
            self._take(request)
            if self._early:
                self._take_early()

    def _forget_early(self) -> None:
        self._early = {}
        self._early_bytes = 0

    def _keep_early(self, request: PushRequest) -> None:
        size = sum(len(entry.body) for entry in request.batch_entry)
        if len(self._early) >= _EARLY_MAX:
            return
        if request.pre_log_index not in self._early and self._early_bytes + size <= _EARLY_BYTES_MAX:
            self._early[request.pre_log_index] = request
            self._early_bytes += size

    def _take_early(self) -> None:
        """Process early pushes whose predecessor has arrived.

        Discards one that does not fit: it is sent again.
        """
        while self._early and (first := min(self._early)) <= self._state.terms.end:
            request = self._early.pop(first)
            fits = self._state.terms.at(first) == request.pre_log_term
            if fits and self._unacceptable(request) is None:
                self._take(request)
        if not self._early:
            self._forget_early()

    def _unacceptable(self, request: PushRequest) -> str | None:
        """Return why the entries of a push must not be written, or None.

        A leader has all committed entries, so a push that would replace one is not a leader's.
        """
        state = self._state
        new = [entry for entry in request.batch_entry if not state.terms.agrees(entry.index, entry.term)]
        if not new:
            return None
        if new[0].index <= state.guarded:
            return f"entry {new[0].index} of term {new[0].term} would replace a committed one"
        return state.misplaced(new)

    def _refusal(self, request: PushRequest) -> ResponseCode | None:
        state = self._state
        if request.term != state.term:
            expired = request.term < state.term
            return ResponseCode.EXPIRED_TERM if expired else ResponseCode.INCONSISTENT_TERM
        if state.role is not Role.FOLLOWER:
            return ResponseCode.NOT_FOLLOWER
        if request.local_id != state.leader:
            return ResponseCode.INCONSISTENT_LEADER
        if request.type is PushType.TRUNCATE:
            return ResponseCode.UNSUPPORTED  # a conflicting APPEND cuts the log instead
        return None if _follow_one_another(request) else ResponseCode.UNEXPECTED_ARGUMENT

    def _take(self, request: PushRequest) -> None:
        state = self._state
        for entry in request.batch_entry:
            if state.terms.agrees(entry.index, entry.term):
                continue
            if entry.index <= state.terms.end:
                state.cut(entry.index - 1)
                self._held = [held for held in self._held if held[0] < entry.index]
            state.write(entry)
        last = _last(request)
        self._matched = max(self._matched, last)
        self._learn_commit(request)
        self._held.append((last, request))
        self.answer_kept()

    def answer_kept(self) -> None:
        """Answer SUCCESS for durable entries, while the term and leader are still the same."""
        state = self._state
        held, self._held = self._held, []
        if self._of != (state.term, state.leader):
            return
        for last, request in held:
            if last <= state.durable:
                state.changes.append(Kept(last, request.local_id))
                self._answer(request, ResponseCode.SUCCESS, index=last)
            else:
                self._held.append((last, request))

    def _learn_commit(self, request: PushRequest) -> None:
        """Advance the committed index, but not beyond the part of the log known to equal the leader's."""
        state = self._state
        state.commit_to(min(request.commit_index, self._matched))
        state.kept_by_all = max(state.kept_by_all, min(request.kept_by_all, state.commit))

    def _conflict(self, request: PushRequest) -> dict[str, int]:
        """Return where the leader should look next: at the start of the conflicting term in this log."""
        terms = self._state.terms
        there = terms.at(request.pre_log_index)
        if there is None or request.pre_log_index < 0:
            return {}
        return {"x_term": there, "x_index": terms.first_of(request.pre_log_index)}

    def _answer(self, request: PushRequest, code: ResponseCode, **fields: int) -> None:
        self._state.answer(
            request,
            PushResponse,
            code=code,
            begin_index=self._state.terms.begin,
            end_index=self._state.terms.end,
            count=request.count,
            **fields,
        )


def _last(request: PushRequest) -> int:
    """Return the index of the last entry of a push."""
    return request.pre_log_index + len(request.batch_entry)


def _follow_one_another(request: PushRequest) -> bool:
    """Return whether the entries are consecutive after the named one.

    Their terms must not decrease, and must not exceed the term of the request.
    """
    index, term = request.pre_log_index, request.pre_log_term
    for entry in request.batch_entry:
        index += 1
        if entry.index != index or not term <= entry.term <= request.term:
            return False
        term = entry.term
    return True
