---------------------------- MODULE TraceElection ----------------------------
(***************************************************************************)
(* Is what the members of a DLedger group wrote into their event log a     *)
(* behaviour of Election?                                                  *)
(*                                                                         *)
(* conformance/traces/group.py turns one log of a whole group into a trace:  *)
(* indexes count from 1, messages are named in the order in which leaders  *)
(* took them. A log tells what a node did and not when each message left   *)
(* or was lost, so some words of Election are taken as follows.            *)
(*  - A push may name any entry that its leader had in its term, a COMMIT  *)
(*    any index that it had committed: Election steps back one by one and  *)
(*    tells each index when it can, we jump. `led` remembers what leaders  *)
(*    had.                                                                 *)
(*  - An answer may be heard late. In Election a late answer is a request  *)
(*    that arrives late; here an acknowledgement is remembered in `kept`   *)
(*    when it is given, and counts when the leader commits; and whoever    *)
(*    hears of a term that somebody is or was in becomes a candidate.      *)
(*  - An fsync may have begun before the newest entries came.              *)
(*                                                                         *)
(* The first event says which kinds of events the members do not record.   *)
(* Steps of these kinds alone are hidden: each is taken only before an     *)
(* event that may need it, and as late as can be. They are at the end.     *)
(***************************************************************************)
EXTENDS Election, Integers, TraceData

VARIABLES
    t, l,  \* which trace, and which event of it is next
    led,   \* by term: its leader, the log it has or had, and what it committed
    kept   \* acknowledgements: who told the leader of which term that it keeps how much

extra == <<led, kept>>

TraceView == <<vars, t, l, extra>>

Event == Traces[t][l]

Is(name) == l <= Len(Traces[t]) /\ Event.event = name /\ l' = l + 1 /\ UNCHANGED t

Hidden(name) == l <= Len(Traces[t]) /\ Event.event = name /\ UNCHANGED <<t, l>>

Unrecorded == Traces[t][1].unrecorded

\* A step of a kind that is not recorded, before one of these events.
Untold(kind, names) == kind \in Unrecorded /\ l <= Len(Traces[t]) /\ Event.event \in names /\ UNCHANGED <<t, l>>

TraceInit == Init /\ t \in DOMAIN Traces /\ l = 1 /\ led = <<>> /\ kept = {}

HasLed(number) == number \in DOMAIN led

Remember(number, record) == led' = [n \in DOMAIN led \cup {number} |-> IF n = number THEN record ELSE led[n]]

Opened == Is("open") /\ UNCHANGED <<vars, extra>>

-----------------------------------------------------------------------------
(* Elections *)

NewTerm == Is("new_term") /\ NextTerm(Event.node) /\ term'[Event.node] = Event.term /\ UNCHANGED extra

(* A candidate's own vote. When it asks again in its term it gives none. *)
Stood ==
    /\ Is("stand")
    /\ term[Event.node] = Event.term
    /\ RequestVotes(Event.node) \/ (InRound(Event.node) /\ UNCHANGED vars)
    /\ UNCHANGED extra

(* The answer is by the rules, to a request that was made. That it is heard, or heard again, changes the candidate. *)
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

(* A request that came after the answers to all it could change: nothing is left of it in Election. *)
AnsweredVoid ==
    /\ Is("vote")
    /\ Event.result \notin {"ACCEPT", "REJECT_TERM_NOT_READY"}
    /\ term[Event.node] > Event.term
    /\ ~\E m \in network : m.kind = "VOTE" /\ m.source = Event.candidate /\ m.target = Event.node /\ m.term = Event.term
    /\ UNCHANGED <<vars, extra>>

AlreadyCandidate(n, number) == role[n] = "CANDIDATE" /\ known[n] >= number /\ ~InRound(n)

HeardLate(n, number) ==
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
           \/ Event.reason = "answer" /\ HeardLate(n, Event.term)
           \/ Event.reason \in {"silence", "transfer"} /\ GiveUp(n)
           \/ Event.reason = "no_quorum" /\ StepDown(n)
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
              /\ UNCHANGED <<file, log, standing, commit, network, answer, calm, history>>
    /\ UNCHANGED extra

(* It tells its leader the truth. *)
Acknowledged ==
    /\ Is("keep")
    /\ LET n == Event.node
           number == term[n]
       IN  /\ role[n] = "FOLLOWER" /\ leader[n] = Event.leader /\ HasLed(number) /\ led[number].node = leader[n]
           /\ Event.index <= Kept(n) /\ Event.index <= Len(led[number].log)
           /\ Matches(n, Event.index, TermAt(led[number].log, Event.index))
           /\ kept' = kept \cup {[term |-> number, node |-> n, index |-> Event.index]}
    /\ UNCHANGED <<vars, led>>

(* What a leader heard of a follower before it committed: no more than it committed by. *)
Heard(n, p, index) ==
    LET told == {i \in 0..index : \E k \in kept : k.term = term[n] /\ k.node = p /\ k.index >= i}
    IN  CHOOSE i \in told \cup {0} : \A j \in told : j <= i

HeardOfFollowers ==
    /\ Hidden("commit") \/ Untold("raft_commit", {"ack"})
    /\ LET n == Event.node
           heard == [p \in Nodes |-> IF p = n THEN 0 ELSE Max(watermark[n][p], Heard(n, p, Event.index))]
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
(* Votes that are not in the log: terms entered, rounds of votes begun, and answers given *)

ToCome == {Traces[t][k] : k \in l..Len(Traces[t])}

WillLead(n, number) == \E e \in ToCome : e.event = "become_leader" /\ e.node = n /\ e.term = number

WillLeave(reasons, number) ==
    \E e \in ToCome : e.event = "step_down" /\ e.reason \in reasons /\ e.term = number + 1

\* Who asked for votes in a term is told by what came of it.
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

EnteredUntold ==
    /\ Untold("vote", VotesAsked \cup {"follow", "write", "keep", "commit"})
    /\ \E n \in IF Event.event \in VotesAsked THEN Nodes ELSE {Event.node} : known[n] \in TermsAsked /\ NextTerm(n)
    /\ UNCHANGED extra

StoodUntold ==
    /\ Untold("vote", VotesAsked)
    /\ \E n \in Nodes : term[n] \in TermsAsked /\ WillHaveStood(n, term[n]) /\ RequestVotes(n)
    /\ UNCHANGED extra

\* What a member answers before it leaves its term counts for a round that ends later.
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

AnsweredUntold ==
    /\ Untold("vote", VotesAsked)
    /\ \E m \in network : m.kind = "VOTE" /\ m.term \in TermsAsked /\ AnswerAsked(m) /\ HandleVote(m)
    /\ UNCHANGED extra

-----------------------------------------------------------------------------
(* Other steps that are not in the log *)

SteppedDownUntold ==
    /\ Untold("step_down", {"new_term"})
    /\ LET n == Event.node
       IN  /\ known[n] < Event.term
           /\ \/ GiveUp(n)
              \/ StepDown(n)
              \/ HeardLate(n, Event.term)
              \/ \E heard \in SUBSET Nodes : EndRound(n, heard)
           /\ known'[n] = Event.term
    /\ UNCHANGED extra

FollowedUntold ==
    /\ Untold("heartbeat", {"write", "keep", "commit", "vote", "step_down", "new_term"})
    /\ \E m \in network :
        /\ m.kind = "HEART_BEAT" /\ m.target = Event.node /\ m.term = term[Event.node]
        /\ HandleHeartBeat(m)
    /\ UNCHANGED extra

CommitsAsked == {"commit", "ack"}

\* As much as a member tells, or as its leader commits by it, now or after the member has left.
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

\* What a member's next crash leaves may as well be durable before.
LeftByCrash(n) ==
    LET crashes == {k \in l..Len(Traces[t]) : Traces[t][k].event = "crash" /\ Traces[t][k].node = n}
        next == CHOOSE k \in crashes : \A other \in crashes : k <= other
    IN  IF crashes = {} THEN Len(log[n]) ELSE Min(Len(log[n]), Traces[t][next].kept)

FlushedUntold ==
    /\ Untold("flush", {"keep"} \cup CommitsAsked \cup Leaving)
    /\ LET asked(n) == {i \in IndexesAsked(n) : Up(n) /\ i \in (durable[n] + 1)..Len(log[n])}
           left(n) == {i \in asked(n) : i <= LeftByCrash(n)}
           most(indexes) == CHOOSE i \in indexes : \A j \in indexes : j <= i
       IN  \/ /\ durable' = [n \in Nodes |-> IF left(n) = {} THEN durable[n] ELSE most(left(n))]
              /\ durable' # durable
           \/ \E n \in Nodes : \E i \in asked(n) \ left(n) : durable' = [durable EXCEPT ![n] = i]
    /\ UNCHANGED <<file, log, standing, commit, network, answer, calm, history, extra>>

MayTell(n, i) ==
    /\ role[n] = "FOLLOWER" /\ HasLed(term[n]) /\ led[term[n]].node = leader[n]
    /\ i <= Kept(n) /\ i <= Len(led[term[n]].log) /\ Matches(n, i, TermAt(led[term[n]].log, i))

\* To tell the truth harms nobody: whoever can tell as much as is asked does.
KeptUntold ==
    /\ Untold("ha_ack", CommitsAsked \cup Leaving)
    /\ kept' = kept \cup UNION {{[term |-> term[n], node |-> n, index |-> i] :
                                    i \in {j \in IndexesAsked(n) : MayTell(n, j)}} : n \in Nodes}
    /\ kept' # kept
    /\ UNCHANGED <<vars, led>>

CommittedUntold ==
    /\ Untold("raft_commit", {"ack"})
    /\ LET n == Event.node
       IN  /\ commit[n] < Event.index
           /\ AdvanceCommit(n)
           /\ Remember(term[n], [led[term[n]] EXCEPT !.commit = commit'[n]])
    /\ UNCHANGED kept

TraceNext ==
    \/ Opened \/ NewTerm \/ Stood \/ Answered \/ AnsweredVoid \/ SteppedDown \/ BecameLeader \/ BecameFollower
    \/ Appended \/ Wrote \/ Flushed \/ Acknowledged \/ HeardOfFollowers \/ CommittedByLeader
    \/ CommittedByFollower \/ Replied \/ Crashed \/ Recovered
    \/ EnteredUntold \/ StoodUntold \/ AnsweredUntold \/ SteppedDownUntold \/ FollowedUntold
    \/ FlushedUntold \/ KeptUntold \/ CommittedUntold

=============================================================================
