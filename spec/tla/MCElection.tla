------------------------------ MODULE MCElection ------------------------------
(* Election, bounded: the numbers of terms and faults are limited. Nodes and Messages bound the rest: a
   leader appends one no-op per term, and a message is appended once. Only some of the nodes stand as
   candidates. Two candidates among three nodes show the same behaviour as three, with fewer states. *)
EXTENDS Election

CONSTANTS
    Candidates, \* the nodes that may become candidates; the others only vote
    MaxTerm,    \* the number of terms that may begin before the calm phase
    MaxCrashes,
    MaxLosses,
    CalmTerms,  \* the number of terms that may begin in the calm phase; with 0 there is no calm phase
    Refusals    \* TRUE if clients also send to nodes that do not lead

TermMax == IF calm THEN MaxTerm + CalmTerms ELSE MaxTerm

\* A node that cannot enter another term does not leave its current term.
MCNextTerm(n) == known[n] <= TermMax /\ NextTerm(n)
MCRequestVotes(n) == n \in Candidates /\ RequestVotes(n)
MCEndRound(n, heard) == EndRound(n, heard) /\ known'[n] <= TermMax
MCGiveUp(n) == term[n] < TermMax /\ GiveUp(n)
MCStepDown(n) == term[n] < TermMax /\ StepDown(n)
MCRefuse(n, m) == Refusals /\ Refuse(n, m)
MCCrash(n, kept) == faults.crashes < MaxCrashes /\ Crash(n, kept)
MCLose(m) == faults.losses < MaxLosses /\ Lose(m)
MCCalm == CalmTerms > 0 /\ Calm

MCStand(n) ==
    \/ MCNextTerm(n) \/ MCRequestVotes(n) \/ MCGiveUp(n) \/ MCStepDown(n)
    \/ \E heard \in SUBSET Nodes : MCEndRound(n, heard)

MCServe == \E m \in Messages : Fail(m) \/ (\E n \in Nodes : AppendEntry(n, m) \/ MCRefuse(n, m) \/ Acknowledge(n, m))

MCFault == \* the limits come first, so that TLC tries nothing beyond them
    \/ faults.crashes < MaxCrashes /\ \E n \in Nodes : \E kept \in 0..Len(log[n]) : MCCrash(n, kept)
    \/ faults.losses < MaxLosses /\ \E m \in network : MCLose(m)

\* A vote request that no candidate waits for, to a node that has voted in this term or is in a later one.
Idle(m) ==
    /\ m.kind = "VOTE" /\ votedFor[m.target] # None /\ term[m.target] >= m.term
    /\ ~(InRound(m.source) /\ term[m.source] = m.term)

MCNext ==
    \/ \E m \in network : ~Idle(m) /\ Receive(m) \* it changes nothing; this guard takes TLC less time than Receive
    \/ \E n \in Nodes : MCStand(n) \/ Lead(n) \/ Restart(n)
    \/ MCServe \/ MCFault \/ MCCalm

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

(* Messages selected by their identifying fields, for the comparison with the reference. *)
Pending(kind, source, target, number) ==
    {m \in network : m.kind = kind /\ m.source = source /\ m.target = target /\ m.term = number}
PendingEntry(kind, source, target, number, index) ==
    {m \in Pending(kind, source, target, number) : m.index = index}

MCHandleVote(s, t, number) == \E m \in Pending("VOTE", s, t, number) : HandleVote(m)
MCHandleHeartBeat(s, t, number) == \E m \in Pending("HEART_BEAT", s, t, number) : HandleHeartBeat(m)
MCHandlePush(s, t, number, index) == \E m \in PendingEntry("PUSH", s, t, number, index) : HandlePush(m)
MCHandleCommit(s, t, number, index) == \E m \in PendingEntry("COMMIT", s, t, number, index) : HandleCommit(m)
MCLoseRequest(kind, s, t, number) == \E m \in Pending(kind, s, t, number) : MCLose(m)
MCLoseEntry(kind, s, t, number, index) == \E m \in PendingEntry(kind, s, t, number, index) : MCLose(m)

(* Liveness. Fairness is required only of nodes that may become candidates. *)
MCRequestFairness == \A n \in Nodes : SF_answers(MCRequestVotes(n))
MCTermFairness == \A n \in Nodes : WF_term(MCNextTerm(n))
MCRoundFairness == \A n \in Nodes : WF_answers(\E heard \in SUBSET Nodes : MCEndRound(n, heard))
MCGiveUpFairness == \A n \in Nodes : WF_vars(MCGiveUp(n))

CandidateFairness == MCTermFairness /\ MCRequestFairness /\ MCRoundFairness /\ MCGiveUpFairness
LogFairness == FlushFairness /\ CommitFairness /\ RepeatFairness

MCFairSpec == MCSpec /\ ArriveFairness /\ CandidateFairness /\ LogFairness

(* Each fairness clause is necessary: without it a liveness property fails. *)
WithoutArriveFairness == MCSpec /\ CandidateFairness /\ LogFairness
WithoutTermFairness == MCSpec /\ ArriveFairness /\ LogFairness /\ MCRequestFairness /\ MCRoundFairness /\ MCGiveUpFairness
WithoutRequestFairness == MCSpec /\ ArriveFairness /\ LogFairness /\ MCTermFairness /\ MCRoundFairness /\ MCGiveUpFairness
WithoutRoundFairness == MCSpec /\ ArriveFairness /\ LogFairness /\ MCTermFairness /\ MCRequestFairness /\ MCGiveUpFairness
WithoutGiveUpFairness == MCSpec /\ ArriveFairness /\ LogFairness /\ MCTermFairness /\ MCRequestFairness /\ MCRoundFairness
WithoutFlushFairness == MCSpec /\ ArriveFairness /\ CandidateFairness /\ CommitFairness /\ RepeatFairness
WithoutCommitFairness == MCSpec /\ ArriveFairness /\ CandidateFairness /\ FlushFairness /\ RepeatFairness
WithoutRepeatFairness == MCSpec /\ ArriveFairness /\ CandidateFairness /\ FlushFairness /\ CommitFairness

(* The state in which only a follower's timer helps: the leader of term 1 has crashed, the others follow
   it, and the phase is calm. *)
LeaderDied ==
    LET dead == CHOOSE n \in Candidates : TRUE
    IN  /\ role = [n \in Nodes |-> IF n = dead THEN "DOWN" ELSE "FOLLOWER"]
        /\ term = [n \in Nodes |-> 1]
        /\ votedFor = [n \in Nodes |-> dead]
        /\ log = [n \in Nodes |-> <<>>] /\ durable = Zero
        /\ leader = [n \in Nodes |-> IF n = dead THEN None ELSE dead]
        /\ known = term
        /\ answers = [n \in Nodes |-> NoAnswers]
        /\ watermark = [n \in Nodes |-> Zero]
        /\ commit = Zero
        /\ network = {}
        /\ answer = [m \in Messages |-> "unsent"]
        /\ calm = TRUE
        /\ ballots = [n \in Nodes |-> [term |-> 1, candidates |-> {dead}]]
        /\ winners = {[term |-> 1, node |-> dead]}
        /\ committed = <<>>
        /\ faults = [crashes |-> 1, losses |-> 0]

(* Refinement: the group is one queue, the longest committed prefix that a quorum holds. The disks of
   crashed nodes count. No-ops are not messages. *)
AbstractAnswer(status) ==
    CASE status = "SUCCESS" -> "acked"
      [] status = "NOT_LEADER" -> "unsent"
      [] OTHER -> status

HeldByQuorum(length) ==
    IsQuorum({n \in Nodes : length <= Len(log[n]) /\ \A i \in 1..length : log[n][i] = committed[i].entry})

Held == CHOOSE length \in 0..Len(committed) :
            HeldByQuorum(length) /\ \A longer \in (length + 1)..Len(committed) : ~HeldByQuorum(longer)

ReplicatedQueue ==
    LET records == SelectSeq(Prefix(committed, Held), LAMBDA record : record.entry.message # NoOp)
    IN  [i \in 1..Len(records) |-> records[i].entry.message]

Abstract == INSTANCE Delivery WITH
    Queues <- {"q0"},
    answer <- [m \in Messages |-> AbstractAnswer(answer[m])],
    sends <- [m \in Messages |-> IF answer[m] \in {"unsent", "NOT_LEADER"} THEN 0 ELSE 1],
    queue <- [q \in {"q0"} |-> ReplicatedQueue],
    seen <- [q \in {"q0"} |-> <<>>],
    committed <- [q \in {"q0"} |-> 0],
    promise <- TRUE,
    serving <- TRUE

abstracted == <<answer, log, committed>> \* the variables that Abstract is computed from

\* UNCHANGED comes first only because it takes TLC less time: most steps change nothing of Delivery.
RefinesDelivery ==
    Abstract!Init /\ [][UNCHANGED abstracted \/ UNCHANGED Abstract!vars \/ Abstract!Next]_Abstract!vars

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
NoAnswer(status) == \A m \in Messages : answer[m] # status
NoSuccess == NoAnswer("SUCCESS")
NoUnknown == NoAnswer("unknown")
NoRefusal == NoAnswer("NOT_LEADER")

NoVoteResult(result) == \A m \in network : m.kind = "VOTE" /\ Up(m.target) => VoteResult(m) # result
NoAccept == NoVoteResult("ACCEPT")
NoExpiredLedgerTerm == NoVoteResult("REJECT_EXPIRED_LEDGER_TERM")
NoSmallLedgerEndIndex == NoVoteResult("REJECT_SMALL_LEDGER_END_INDEX")
NoExpiredVoteTerm == NoVoteResult("REJECT_EXPIRED_VOTE_TERM")
NoAlreadyHasLeader == NoVoteResult("REJECT_ALREADY_HAS_LEADER")
NoAlreadyVoted == NoVoteResult("REJECT_ALREADY_VOTED")
NoVoteTermNotReady == NoVoteResult("REJECT_TERM_NOT_READY")
NoTermSmallThanLedger == NoVoteResult("REJECT_TERM_SMALL_THAN_LEDGER") \* false only in ElectionShipped

\* Without answers from a quorum there is no decision.
NoRoundResult(result) ==
    \A n \in Nodes :
        LET heard == {p \in Nodes : answers[n][p] # None}
        IN  IsQuorum(heard) => RoundResult(n, heard) # result
NoWaitToRevote == NoRoundResult("WAIT_TO_REVOTE")
NoPassed == NoRoundResult("PASSED")
NoRevote == NoRoundResult("REVOTE_IMMEDIATELY")
NoVoteNext == NoRoundResult("WAIT_TO_VOTE_NEXT")

NoHeartBeatCode(code) ==
    \A m \in network : m.kind = "HEART_BEAT" /\ Up(m.target) /\ Leads(m.source, m.term) => HeartBeatCode(m) # code
NoHeartBeatSuccess == NoHeartBeatCode("SUCCESS")
NoExpiredTerm == NoHeartBeatCode("EXPIRED_TERM")
NoTermNotReady == NoHeartBeatCode("TERM_NOT_READY")
NoInconsistentLeader == NoHeartBeatCode("INCONSISTENT_LEADER") \* false only in ElectionShipped

Pushed(m) == m.kind = "PUSH" /\ Follows(m.target, m)
NoInconsistentState == \A m \in network : Pushed(m) => Matches(m.target, m.index - 1, m.prevTerm)
NoTruncation ==
    \A m \in network :
        Pushed(m) /\ Matches(m.target, m.index - 1, m.prevTerm) /\ m.index <= Len(log[m.target])
            => Matches(m.target, m.index, m.entry.term)
NoAskedAgain == \A m \in network : Pushed(m) /\ Matches(m.target, m.index, m.entry.term) => m.index <= durable[m.target]

NoFollowerCommits == \A n \in Nodes : commit[n] > 0 => role[n] = "LEADER"
NoOldTermCommitted == \A i \in 1..Len(committed) : committed[i].entry.term = committed[i].by
NoSecondLeader == Cardinality(winners) < 2
NoStepDown == \A n \in Nodes : [term |-> term[n], node |-> n] \in winners /\ Up(n) => Leads(n, term[n])
NoGiveUp == \A n \in Nodes : role[n] = "CANDIDATE" /\ votedFor[n] \notin {None, n} => known[n] = term[n]
NoCrash == faults.crashes = 0
NoRestart == faults.crashes > 0 => \E n \in Nodes : ~Up(n)
NoTailLost == \A m \in network : m.kind = "PUSH" => m.index <= Len(log[m.source])
NoCalm == ~calm
===============================================================================
