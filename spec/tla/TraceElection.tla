---------------------------- MODULE TraceElection ----------------------------
(***************************************************************************)
(* Checks that the event log of a DLedger group's members is a behaviour   *)
(* of Election.                                                            *)
(*                                                                         *)
(* conformance/traces/group.py converts one log of a whole group into a    *)
(* trace: indexes count from 1, messages are named in the order in which   *)
(* leaders accepted them. A log records the actions of a node, not when    *)
(* each message was sent or lost. Therefore some parts of Election are     *)
(* interpreted as follows.                                                 *)
(*  - A push may contain any entry that its leader had in its term, and a  *)
(*    COMMIT any index that its leader had committed. Election moves back  *)
(*    one by one and sends each index, while our implementation jumps.     *)
(*    `led` records the entries of leaders.                                *)
(*  - An answer may arrive late. Election models a late answer as a        *)
(*    request that arrives late. Here `kept` records an acknowledgement    *)
(*    when it is sent, and it counts when the leader commits. A node that  *)
(*    receives a higher term, which some node has reached, becomes a       *)
(*    candidate.                                                           *)
(*  - An fsync may have begun before the newest entries were written.      *)
(*                                                                         *)
(* The first event lists the kinds of events that the members do not       *)
(* record. Only steps of these kinds are hidden. Each is taken only before *)
(* an event that may need it, and as late as possible. They are at the end *)
(* of this module.                                                         *)
(***************************************************************************)
EXTENDS Election, Integers, TraceData

VARIABLES
    t, l,  \* the index of the trace, and the index of its next event
    led,   \* by term: the leader, its current or former log, and its commit index
    kept   \* acknowledgements: the node, the term of its leader, and the index up to which it keeps entries

extra == <<led, kept>>

TraceView == <<vars, t, l, extra>>

Event == Traces[t][l]

Is(name) == l <= Len(Traces[t]) /\ Event.event = name /\ l' = l + 1 /\ UNCHANGED t

Hidden(name) == l <= Len(Traces[t]) /\ Event.event = name /\ UNCHANGED <<t, l>>

Unrecorded == Traces[t][1].unrecorded

\* A step of a kind that is not recorded, before one of these events.
Unlogged(kind, names) == kind \in Unrecorded /\ l <= Len(Traces[t]) /\ Event.event \in names /\ UNCHANGED <<t, l>>

TraceInit == Init /\ t \in DOMAIN Traces /\ l = 1 /\ led = <<>> /\ kept = {}

HasLed(number) == number \in DOMAIN led

Remember(number, record) == led' = [n \in DOMAIN led \cup {number} |-> IF n = number THEN record ELSE led[n]]

Opened == Is("open") /\ UNCHANGED <<vars, extra>>

-----------------------------------------------------------------------------
(* Elections *)

NewTerm == Is("new_term") /\ NextTerm(Event.node) /\ term'[Event.node] = Event.term /\ UNCHANGED extra

(* A candidate's own vote. A candidate that repeats its requests in the same term casts no new vote. *)
Stood ==
    /\ Is("stand")
    /\ term[Event.node] = Event.term
    /\ RequestVotes(Event.node) \/ (InRound(Event.node) /\ UNCHANGED vars)
    /\ UNCHANGED extra

(* The answer follows the rules and belongs to a request that was sent. A candidate that receives it, even
   repeatedly, changes. *)
Answered ==
    /\ Is("vote")
    /\ \E m \in network :
        /\ m.kind = "VOTE" /\ m.source = Event.candidate /\ m.target = Event.node /\ m.term = Event.term
        /\ VoteResult(m) = Event.result
        /\ LET waits == InRound(m.source) /\ term[m.source] = m.term
               first == waits /\ answers[m.source][m.target] = None
               learns == waits /\ term[m.target] > m.term
               changes == Event.result = "ACCEPT" /\ votedFor[m.target] # m.source
               yields == Event.result = "REJECT_TERM_NOT_READY"
           IN  \/ ~learns /\ HandleVote(m)
               \/ (~first \/ learns) /\ ~changes /\ ~yields /\ UNCHANGED vars
    /\ UNCHANGED extra

(* The answer to a void request. It can change neither node any more, so Election has dropped it. *)
AnsweredVoid ==
    /\ Is("vote")
    /\ Event.result \notin {"ACCEPT", "REJECT_TERM_NOT_READY"}
    /\ term[Event.node] > Event.term
    /\ ~\E m \in network : m.kind = "VOTE" /\ m.source = Event.candidate /\ m.target = Event.node /\ m.term = Event.term
    /\ UNCHANGED <<vars, extra>>

AlreadyCandidate(n, number) == role[n] = "CANDIDATE" /\ known[n] >= number /\ ~InRound(n)

ReceivedLate(n, number) ==
    /\ number > term[n]
    /\ \E p \in Nodes : term[p] >= number
    /\ BecomeCandidate(n, number)
    /\ UNCHANGED <<file, ledger, commit, network, answer, calm, history>>

SteppedDown ==
    /\ Is("step_down")
    /\ LET n == Event.node
       IN  \/ AlreadyCandidate(n, Event.term) /\ UNCHANGED vars
           \/ Event.reason = "heart_beat" /\ \E m \in network :
                /\ m.kind = "HEART_BEAT" /\ m.source = Event.peer /\ m.target = n /\ m.term = Event.term
                /\ HandleHeartBeat(m)
           \/ Event.reason = "answer" /\ ReceivedLate(n, Event.term)
           \/ Event.reason \in {"silence", "transfer"} /\ GiveUp(n)
           \/ Event.reason \in {"no_quorum", "transfer"} /\ StepDown(n)
           \/ Event.reason = "round" /\ \E heard \in SUBSET Nodes : EndRound(n, heard)
    /\ role'[Event.node] = "CANDIDATE" /\ known'[Event.node] >= Event.term
    /\ UNCHANGED extra

BecameLeader ==
    /\ Is("become_leader")
    /\ LET n == Event.node
       IN  /\ term[n] = Event.term
           /\ \E heard \in SUBSET Nodes : EndRound(n, heard)
           /\ role'[n] = "LEADER" /\ Len(log'[n]) = Event.index
           /\ Remember(Event.term, [node |-> n, log |-> log'[n], commit |-> commit[n]])
    /\ UNCHANGED kept

BecameFollower ==
    /\ Is("follow")
    /\ term[Event.node] = Event.term
    /\ \E m \in network :
        /\ m.kind = "HEART_BEAT" /\ m.source = Event.leader /\ m.target = Event.node /\ m.term = Event.term
        /\ HandleHeartBeat(m)
    /\ role'[Event.node] = "FOLLOWER"
    /\ UNCHANGED extra

-----------------------------------------------------------------------------
(* Entries *)

Appended ==
    /\ Is("append")
    /\ LET n == Event.node
       IN  /\ term[n] = Event.term
           /\ AppendEntry(n, Event.message)
           /\ Len(log'[n]) = Event.index
           /\ Remember(Event.term, [led[Event.term] EXCEPT !.log = log'[n]])
    /\ UNCHANGED kept

(* The push of one entry that the leader of the follower's term had. *)
Wrote ==
    /\ Is("write")
    /\ LET n == Event.node
           number == term[n]
           theirs == led[number].log
           i == Event.index
           m == [kind |-> "PUSH", source |-> leader[n], target |-> n, term |-> number, index |-> i,
                 prevTerm |-> TermAt(theirs, i - 1), entry |-> theirs[i]]
       IN  /\ role[n] = "FOLLOWER" /\ HasLed(number) /\ led[number].node = leader[n]
           /\ i <= Len(theirs) /\ theirs[i].term = Event.term
           /\ Matches(n, i - 1, TermAt(theirs, i - 1)) /\ ~Matches(n, i, theirs[i].term)
           /\ Event.cuts = (i <= Len(log[n]))
           /\ HandlePush(m)
           /\ Len(log'[n]) = i
    /\ UNCHANGED extra

Flushed ==
    /\ Is("flush")
    /\ LET n == Event.node
       IN  \/ Event.index = Len(log[n]) /\ Flush(n)
           \/ Event.index = durable[n] /\ UNCHANGED vars
           \/ /\ Event.index \in (durable[n] + 1)..(Len(log[n]) - 1)
              /\ durable' = [durable EXCEPT ![n] = Event.index]
              /\ UNCHANGED <<file, log, nodeState, commit, network, answer, calm, history>>
    /\ UNCHANGED extra

(* The follower's acknowledgement to its leader is true. *)
Acknowledged ==
    /\ Is("keep")
    /\ LET n == Event.node
           number == term[n]
       IN  /\ role[n] = "FOLLOWER" /\ leader[n] = Event.leader /\ HasLed(number) /\ led[number].node = leader[n]
           /\ Event.index <= Kept(n) /\ Event.index <= Len(led[number].log)
           /\ Matches(n, Event.index, TermAt(led[number].log, Event.index))
           /\ kept' = kept \cup {[term |-> number, node |-> n, index |-> Event.index]}
    /\ UNCHANGED <<vars, led>>

(* The acknowledgements that a leader received from a follower before it committed, up to the committed
   index. *)
AcknowledgedUpTo(n, p, index) ==
    LET indexes == {i \in 0..index : \E k \in kept : k.term = term[n] /\ k.node = p /\ k.index >= i}
    IN  CHOOSE i \in indexes \cup {0} : \A j \in indexes : j <= i

ReceivedFromFollowers ==
    /\ Hidden("commit") \/ Unlogged("raft_commit", {"ack"})
    /\ LET n == Event.node
           heard == [p \in Nodes |-> IF p = n THEN 0 ELSE Max(watermark[n][p], AcknowledgedUpTo(n, p, Event.index))]
       IN  /\ role[n] = "LEADER" /\ heard # watermark[n]
           /\ watermark' = [watermark EXCEPT ![n] = heard]
    /\ UNCHANGED <<file, ledger, role, leader, known, answers, commit, network, answer, calm, history, extra>>

CommittedByLeader ==
    /\ Is("commit")
    /\ LET n == Event.node
       IN  /\ role[n] = "LEADER"
           /\ AdvanceCommit(n) /\ commit'[n] = Event.index
           /\ Remember(term[n], [led[term[n]] EXCEPT !.commit = Event.index])
    /\ UNCHANGED kept

CommittedByFollower ==
    /\ Is("commit")
    /\ LET n == Event.node
           number == term[n]
           m == [kind |-> "COMMIT", source |-> leader[n], target |-> n, term |-> number, index |-> Event.index,
                 entryTerm |-> TermAt(led[number].log, Event.index)]
       IN  /\ role[n] = "FOLLOWER" /\ HasLed(number) /\ led[number].node = leader[n]
           /\ Event.index <= led[number].commit
           /\ HandleCommit(m) /\ commit'[n] = Event.index
    /\ UNCHANGED extra

Replied ==
    /\ Is("ack")
    /\ term[Event.node] = Event.term
    /\ Acknowledge(Event.node, Event.message)
    /\ UNCHANGED extra

-----------------------------------------------------------------------------
(* Faults *)

Crashed == Is("crash") /\ Crash(Event.node, Event.kept) /\ UNCHANGED extra

Recovered ==
    /\ Is("recover")
    /\ LET n == Event.node
       IN  /\ Restart(n)
           /\ term[n] = Event.term /\ votedFor[n] = Event.votedFor
           /\ Len(log[n]) = Event.index /\ EndTerm(log[n]) = Event.endTerm
    /\ UNCHANGED extra

-----------------------------------------------------------------------------
(* Votes that are not in the log: new terms, rounds of votes, and answers *)

ToCome == {Traces[t][k] : k \in l..Len(Traces[t])}

WillLead(n, number) == \E e \in ToCome : e.event = "become_leader" /\ e.node = n /\ e.term = number

WillLeave(reasons, number) ==
    \E e \in ToCome : e.event = "step_down" /\ e.reason \in reasons /\ e.term = number + 1

\* A later event shows that the node requested votes in this term.
WillHaveStood(n, number) ==
    \/ WillLead(n, number)
    \/ \E e \in ToCome : e.event = "step_down" /\ e.reason = "vote" /\ e.peer = n /\ e.term = number
    \/ \E e \in ToCome : e.event = "crash" /\ e.votedFor = n /\ e.term = number
    \/ WillLeave({"round", "silence"}, number)

TermsAsked ==
    CASE Event.event = "step_down" -> {term[Event.node], known[Event.node], Event.term - 1, Event.term}
      [] Event.event = "crash" -> {term[Event.node], known[Event.node], Event.term}
      [] Event.event = "become_leader" -> {Event.term}
      [] OTHER -> {known[Event.node]}

VotesAsked == {"become_leader", "step_down", "crash"}

EnteredUnlogged ==
    /\ Unlogged("vote", VotesAsked \cup {"follow", "write", "keep", "commit"})
    /\ \E n \in IF Event.event \in VotesAsked THEN Nodes ELSE {Event.node} : known[n] \in TermsAsked /\ NextTerm(n)
    /\ UNCHANGED extra

StoodUnlogged ==
    /\ Unlogged("vote", VotesAsked)
    /\ \E n \in Nodes : term[n] \in TermsAsked /\ WillHaveStood(n, term[n]) /\ RequestVotes(n)
    /\ UNCHANGED extra

\* An answer that a member gives before it leaves its term may count for a round that ends later.
AnswersToLeave(m) ==
    /\ m.target = Event.node
    /\ \/ VoteResult(m) = "ACCEPT" /\ (WillLead(m.source, m.term) \/ WillLeave({"silence"}, m.term))
       \/ VoteResult(m) # "REJECT_TERM_NOT_READY" /\ WillLeave({"round"}, m.term)

AnswerAsked(m) ==
    CASE Event.event = "become_leader" ->
            m.source = Event.node /\ m.term = Event.term /\ VoteResult(m) = "ACCEPT"
      [] Event.event = "crash" ->
            AnswersToLeave(m) \/ (m.target = Event.node /\ m.source = Event.votedFor /\ VoteResult(m) = "ACCEPT")
      [] OTHER ->
            \/ AnswersToLeave(m)
            \/ Event.reason = "vote" /\ m.source = Event.peer /\ m.target = Event.node /\ m.term = Event.term
            \/ Event.reason = "round" /\ m.term = Event.term - 1 /\ VoteResult(m) # "REJECT_TERM_NOT_READY"

AnsweredUnlogged ==
    /\ Unlogged("vote", VotesAsked)
    /\ \E m \in network : m.kind = "VOTE" /\ m.term \in TermsAsked /\ AnswerAsked(m) /\ HandleVote(m)
    /\ UNCHANGED extra

-----------------------------------------------------------------------------
(* Other steps that are not in the log *)

SteppedDownUnlogged ==
    /\ Unlogged("step_down", {"new_term"})
    /\ LET n == Event.node
       IN  /\ known[n] < Event.term
           /\ \/ GiveUp(n)
              \/ StepDown(n)
              \/ ReceivedLate(n, Event.term)
              \/ \E heard \in SUBSET Nodes : EndRound(n, heard)
           /\ known'[n] = Event.term
    /\ UNCHANGED extra

FollowedUnlogged ==
    /\ Unlogged("heartbeat", {"write", "keep", "commit", "vote", "step_down", "new_term"})
    /\ \E m \in network :
        /\ m.kind = "HEART_BEAT" /\ m.target = Event.node /\ m.term = term[Event.node]
        /\ HandleHeartBeat(m)
    /\ UNCHANGED extra

CommitsAsked == {"commit", "ack"}

\* The index that a member acknowledges, or that its leader commits because of it, now or after the member has
\* left.
IndexesAsked(n) ==
    LET follows == role[n] = "FOLLOWER" /\ "ha_ack" \in Unrecorded
    IN  CASE Event.event = "keep" -> IF n = Event.node THEN {Event.index} ELSE {}
          [] Event.event \in CommitsAsked ->
                IF role[Event.node] = "LEADER" /\ (n = Event.node \/ (follows /\ leader[n] = Event.node))
                THEN {Event.index} ELSE {}
          [] OTHER ->
                IF n = Event.node /\ follows
                THEN {e.index : e \in {o \in ToCome : o.event \in CommitsAsked /\ o.node = leader[n]}} ELSE {}

Leaving == {"step_down", "new_term", "vote", "crash"}

\* The part of the log that remains after the member's next crash may already be durable.
LeftByCrash(n) ==
    LET crashes == {k \in l..Len(Traces[t]) : Traces[t][k].event = "crash" /\ Traces[t][k].node = n}
        next == CHOOSE k \in crashes : \A other \in crashes : k <= other
    IN  IF crashes = {} THEN Len(log[n]) ELSE Min(Len(log[n]), Traces[t][next].kept)

FlushedUnlogged ==
    /\ Unlogged("flush", {"keep"} \cup CommitsAsked \cup Leaving)
    /\ LET asked(n) == {i \in IndexesAsked(n) : Up(n) /\ i \in (durable[n] + 1)..Len(log[n])}
           left(n) == {i \in asked(n) : i <= LeftByCrash(n)}
           most(indexes) == CHOOSE i \in indexes : \A j \in indexes : j <= i
       IN  \/ /\ durable' = [n \in Nodes |-> IF left(n) = {} THEN durable[n] ELSE most(left(n))]
              /\ durable' # durable
           \/ \E n \in Nodes : \E i \in asked(n) \ left(n) : durable' = [durable EXCEPT ![n] = i]
    /\ UNCHANGED <<file, log, nodeState, commit, network, answer, calm, history, extra>>

MayAcknowledge(n, i) ==
    /\ role[n] = "FOLLOWER" /\ HasLed(term[n]) /\ led[term[n]].node = leader[n]
    /\ i <= Kept(n) /\ i <= Len(led[term[n]].log) /\ Matches(n, i, TermAt(led[term[n]].log, i))

\* A true acknowledgement makes no later event impossible. Every node that can acknowledge the requested index
\* therefore does so.
KeptUnlogged ==
    /\ Unlogged("ha_ack", CommitsAsked \cup Leaving)
    /\ kept' = kept \cup UNION {{[term |-> term[n], node |-> n, index |-> i] :
                                    i \in {j \in IndexesAsked(n) : MayAcknowledge(n, j)}} : n \in Nodes}
    /\ kept' # kept
    /\ UNCHANGED <<vars, led>>

CommittedUnlogged ==
    /\ Unlogged("raft_commit", {"ack"})
    /\ LET n == Event.node
       IN  /\ commit[n] < Event.index
           /\ AdvanceCommit(n)
           /\ Remember(term[n], [led[term[n]] EXCEPT !.commit = commit'[n]])
    /\ UNCHANGED kept

TraceNext ==
    \/ Opened \/ NewTerm \/ Stood \/ Answered \/ AnsweredVoid \/ SteppedDown \/ BecameLeader \/ BecameFollower
    \/ Appended \/ Wrote \/ Flushed \/ Acknowledged \/ ReceivedFromFollowers \/ CommittedByLeader
    \/ CommittedByFollower \/ Replied \/ Crashed \/ Recovered
    \/ EnteredUnlogged \/ StoodUnlogged \/ AnsweredUnlogged \/ SteppedDownUnlogged \/ FollowedUnlogged
    \/ FlushedUnlogged \/ KeptUnlogged \/ CommittedUnlogged

=============================================================================
