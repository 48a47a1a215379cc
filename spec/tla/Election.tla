------------------------------ MODULE Election ------------------------------
(***************************************************************************)
(* DLedger's Raft, as it should be: nodes vote for a leader of a term, the *)
(* leader appends messages to its log and pushes them to its followers,    *)
(* what a quorum keeps durably is committed and acknowledged. Messages of  *)
(* the network are lost, repeated and overtaken; nodes crash and keep what *)
(* they had made durable. Rules and response codes are DLedger's, but for  *)
(* those that are unsound; what was released is ElectionShipped.           *)
(*                                                                         *)
(* Abstracted away, one sentence each:                                     *)
(*  - Time: a timer may go off at any moment, until it is calm.            *)
(*  - The network: a message stays in it, so that it can arrive late, out  *)
(*    of order, again or never; Lose takes one away for good, which for    *)
(*    safety is as good as never, and matters for liveness alone.          *)
(*  - Lost terms: who gave its vote to another, or may have led the term,  *)
(*    next stands in a later one; DLedger first asks in vain in this one.  *)
(*  - Void messages: one that can change neither end, as both are past its *)
(*    term, is dropped.                                                    *)
(*  - Answers: an answer reaches its waiting caller in the step that made  *)
(*    it, or never; a late one is a request that arrived late, since each  *)
(*    answer states what stays true in the term in which it counts.        *)
(*  - Push: COMPARE, TRUNCATE and APPEND are one message that names the    *)
(*    entry before its own (as in DLedger's later versions), the commit    *)
(*    index goes its own way, and one entry is pushed at a time.           *)
(*  - Disks: an fsync is one step and honest; bytes behind a cut never     *)
(*    come back.                                                           *)
(*  - Configuration: members are fixed and known to each other, leadership *)
(*    is not transferred, nothing is deleted, there are no snapshots: the  *)
(*    codes that these have of their own do not occur.                     *)
(*  - Clients: a message is sent once; whatever its caller learns but      *)
(*    success or NOT_LEADER (timeout, TERM_CHANGED, a dead connection) is  *)
(*    "unknown".                                                           *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Nodes,    \* the members of the group
    Messages  \* what clients may append, strings

None == "none"
NoOp == "noop" \* what a leader begins its term with: entries of older terms are committed through it

ASSUME Nodes # {} /\ None \notin Nodes /\ NoOp \notin Messages

-----------------------------------------------------------------------------
(* Rules that need no state *)

Quorum == Cardinality(Nodes) \div 2 + 1

IsQuorum(nodes) == Cardinality(nodes) >= Quorum

\* Is a log that ends so at least as good as mine?
UpToDate(endTerm, endIndex, myTerm, myIndex) == endTerm > myTerm \/ (endTerm = myTerm /\ endIndex >= myIndex)

Entries == [term : Nat, message : Messages \cup {NoOp}]

Prefix(sequence, length) == SubSeq(sequence, 1, length)

IsPrefix(shorter, longer) ==
    /\ Len(shorter) <= Len(longer)
    /\ shorter = Prefix(longer, Len(shorter))

TermAt(entries, index) == IF index = 0 THEN 0 ELSE entries[index].term

EndTerm(entries) == TermAt(entries, Len(entries))

EndsAsWellAs(one, other) == UpToDate(EndTerm(one), Len(one), EndTerm(other), Len(other))

Max(a, b) == IF a > b THEN a ELSE b

Min(a, b) == IF a < b THEN a ELSE b

BetterLedger == {"REJECT_EXPIRED_LEDGER_TERM", "REJECT_SMALL_LEDGER_END_INDEX"}

VoteResults == BetterLedger \cup
    {"ACCEPT", "REJECT_EXPIRED_VOTE_TERM", "REJECT_ALREADY_HAS_LEADER", "REJECT_ALREADY_VOTED",
     "REJECT_TERM_NOT_READY", "REJECT_TERM_SMALL_THAN_LEDGER"}

-----------------------------------------------------------------------------
(* State *)

VARIABLE role      \* what each node is
RoleOK == role \in [Nodes -> {"CANDIDATE", "FOLLOWER", "LEADER", "DOWN"}]

VARIABLE term      \* the term it is in; durable
TermOK == term \in [Nodes -> Nat]

VARIABLE votedFor  \* whom it voted for in this term; durable, in one write with the term
VotedForOK == votedFor \in [Nodes -> Nodes \cup {None}]

VARIABLE log       \* its entries as a reader of the files sees them: page cache over disk
LogOK == log \in [Nodes -> Seq(Entries)]

VARIABLE durable   \* how many of them are durable
DurableOK == \A n \in Nodes : durable[n] \in 0..Len(log[n])

VARIABLE leader    \* memory: the leader it knows of in this term
LeaderOK == leader \in [Nodes -> Nodes \cup {None}]

VARIABLE known     \* memory: the term it is about to enter, if larger than its own (needIncrease)
KnownOK == \A n \in Nodes : known[n] \in Nat /\ known[n] >= term[n]

VARIABLE answers   \* memory of a candidate: what was answered in its round of votes, its own vote included
AnswersOK == answers \in [Nodes -> [Nodes -> VoteResults \cup {None}]]

VARIABLE watermark \* memory of a leader: how far each follower's log is known to be its own, and durable
WatermarkOK == watermark \in [Nodes -> [Nodes -> Nat]]

VARIABLE commit    \* memory: how many of its entries it knows to be committed
CommitOK == commit \in [Nodes -> Nat]

VARIABLE network   \* messages on their way
Links == [source : Nodes, target : Nodes]
NetworkOK ==
    \A m \in network :
        /\ {m.source, m.target} \subseteq Nodes /\ m.term \in Nat
        /\ \/ m.kind = "VOTE" /\ m.endIndex \in Nat /\ m.endTerm \in Nat
           \/ m.kind = "HEART_BEAT"
           \/ m.kind = "PUSH" /\ m.index \in Nat \ {0} /\ m.prevTerm \in Nat /\ m.entry \in Entries
           \/ m.kind = "COMMIT" /\ m.index \in Nat \ {0} /\ m.entryTerm \in Nat

VARIABLE answer    \* what the client knows of each message
AnswerOK == answer \in [Messages -> {"unsent", "waiting", "SUCCESS", "NOT_LEADER", "unknown"}]

VARIABLE calm      \* no more faults: nothing is lost, late or repeated, timers go off when they should
CalmOK == calm \in BOOLEAN

VARIABLE ballots   \* history: to whom each node gave its vote, in the latest term in which it gave one
BallotsOK == ballots \in [Nodes -> [term : Nat, candidates : SUBSET Nodes]]

VARIABLE winners   \* history: who became leader of which term
WinnersOK == winners \subseteq [term : Nat, node : Nodes]

VARIABLE committed \* history: what was committed, each entry by the leader of which term
CommittedOK == committed \in Seq([entry : Entries, by : Nat])

VARIABLE faults    \* history: how many crashes and losses there were
FaultsOK == faults \in [crashes : Nat, losses : Nat]

file == <<term, votedFor>>
ledger == <<log, durable>>
standing == <<role, leader, known, answers, watermark>>
history == <<ballots, winners, committed, faults>>
vars == <<file, ledger, standing, commit, network, answer, calm, history>>

TypeOK ==
    /\ RoleOK /\ TermOK /\ VotedForOK /\ LogOK /\ DurableOK /\ LeaderOK /\ KnownOK /\ AnswersOK /\ WatermarkOK
    /\ CommitOK /\ NetworkOK /\ AnswerOK /\ CalmOK /\ BallotsOK /\ WinnersOK /\ CommittedOK /\ FaultsOK

NoAnswers == [p \in Nodes |-> None]
Zero == [p \in Nodes |-> 0]

Init ==
    /\ role = [n \in Nodes |-> "CANDIDATE"]
    /\ term = [n \in Nodes |-> 1]
    /\ votedFor = [n \in Nodes |-> None]
    /\ log = [n \in Nodes |-> <<>>] /\ durable = Zero
    /\ leader = [n \in Nodes |-> None]
    /\ known = [n \in Nodes |-> 1]
    /\ answers = [n \in Nodes |-> NoAnswers]
    /\ watermark = [n \in Nodes |-> Zero]
    /\ commit = Zero
    /\ network = {}
    /\ answer = [m \in Messages |-> "unsent"]
    /\ calm = FALSE
    /\ ballots = [n \in Nodes |-> [term |-> 0, candidates |-> {}]]
    /\ winners = {}
    /\ committed = <<>>
    /\ faults = [crashes |-> 0, losses |-> 0]

-----------------------------------------------------------------------------
(* Messages *)

Up(n) == role[n] # "DOWN"

Peers(n) == Nodes \ {n}

InRound(n) == answers[n] # NoAnswers

Leads(n, t) == role[n] = "LEADER" /\ term[n] = t

Votes(n) ==
    {[kind |-> "VOTE", source |-> n, target |-> p, term |-> term[n],
      endIndex |-> Len(log[n]), endTerm |-> EndTerm(log[n])] : p \in Peers(n)}

HeartBeats(n) == {[kind |-> "HEART_BEAT", source |-> n, target |-> p, term |-> term[n]] : p \in Peers(n)}

\* The entry at an index of the leader's log, and the term of the one before it.
Push(n, p, entries, index) ==
    [kind |-> "PUSH", source |-> n, target |-> p, term |-> term[n], index |-> index,
     prevTerm |-> TermAt(entries, index - 1), entry |-> entries[index]]

PushToAll(n, entries, index) == {Push(n, p, entries, index) : p \in Peers(n)}

\* What is committed, by the term of its last entry: same index and term imply the same prefix.
Commits(n, index) ==
    {[kind |-> "COMMIT", source |-> n, target |-> p, term |-> term[n],
      index |-> index, entryTerm |-> TermAt(log[n], index)] : p \in Peers(n)}

\* Its target refuses it, and its source does not care any more.
Void(m, terms) == terms[m.target] > m.term /\ (m.kind \in {"PUSH", "COMMIT"} \/ terms[m.source] > m.term)

Send(messages) == network' = network \cup {m \in messages : ~Void(m, term)}

\* Once it is calm, only that arrives which its sender still stands for.
Arrives(m) == calm => term[m.source] = m.term /\ (IF m.kind = "VOTE" THEN InRound(m.source) ELSE role[m.source] = "LEADER")

-----------------------------------------------------------------------------
(* Elections *)

\* It learned of term t, or wants it since its own is lost.
BecomeCandidate(n, t) ==
    /\ role' = [role EXCEPT ![n] = "CANDIDATE"]
    /\ leader' = [leader EXCEPT ![n] = None]
    /\ known' = [known EXCEPT ![n] = Max(@, t)]
    /\ answers' = [answers EXCEPT ![n] = NoAnswers]
    /\ watermark' = [watermark EXCEPT ![n] = Zero]

\* The new term is durable before anybody hears of it.
NextTerm(n) ==
    /\ role[n] = "CANDIDATE"
    /\ known[n] > term[n]
    /\ term' = [term EXCEPT ![n] = known[n]]
    /\ votedFor' = [votedFor EXCEPT ![n] = None]
    /\ network' = {m \in network : ~Void(m, term')}
    /\ UNCHANGED <<ledger, standing, commit, answer, calm, history>>

Cast(n, candidate) ==
    /\ votedFor' = [votedFor EXCEPT ![n] = candidate]
    /\ ballots' = [ballots EXCEPT ![n] =
                       IF @.term = term[n] THEN [@ EXCEPT !.candidates = @ \cup {candidate}]
                       ELSE IF @.term < term[n] THEN [term |-> term[n], candidates |-> {candidate}] ELSE @]

\* A round of votes begins with the candidate's own. Waits are random, and longer for whoever was refused for its log:
\* calm means that no two rounds overlap, and that the better log asks first.
RequestVotes(n) ==
    /\ role[n] = "CANDIDATE"
    /\ known[n] = term[n] /\ votedFor[n] \in {None, n} /\ ~InRound(n)
    /\ calm => \A p \in Nodes : ~InRound(p) /\ (Up(p) => EndsAsWellAs(log[n], log[p]))
    /\ Cast(n, n)
    /\ answers' = [answers EXCEPT ![n][n] = "ACCEPT"]
    /\ Send(Votes(n))
    /\ UNCHANGED <<term, ledger, role, leader, known, watermark, commit, answer, calm, winners, committed, faults>>

\* DLedger's order: first the logs, then the terms. The last but one guards against a lost term: not met here.
VoteResult(m) ==
    LET n == m.target
    IN  IF m.endTerm < EndTerm(log[n]) THEN "REJECT_EXPIRED_LEDGER_TERM"
        ELSE IF ~UpToDate(m.endTerm, m.endIndex, EndTerm(log[n]), Len(log[n])) THEN "REJECT_SMALL_LEDGER_END_INDEX"
        ELSE IF m.term < term[n] THEN "REJECT_EXPIRED_VOTE_TERM"
        ELSE IF m.term = term[n] /\ votedFor[n] \notin {None, m.source}
            THEN IF leader[n] # None THEN "REJECT_ALREADY_HAS_LEADER" ELSE "REJECT_ALREADY_VOTED"
        ELSE IF m.term > term[n] THEN "REJECT_TERM_NOT_READY"
        ELSE IF m.term < EndTerm(log[n]) THEN "REJECT_TERM_SMALL_THAN_LEDGER"
        ELSE "ACCEPT"

\* A voter behind the candidate's term gives up what it is. Every answer tells the voter's term; a candidate that
\* is behind ends its round.
HandleVote(m) ==
    LET voter == m.target
        candidate == m.source
        result == VoteResult(m)
        behind == result = "REJECT_TERM_NOT_READY"
        waits == InRound(candidate) /\ term[candidate] = m.term
        learns == waits /\ term[voter] > m.term
        heard == [answers EXCEPT ![candidate] =
                      IF learns THEN NoAnswers ELSE IF waits THEN [@ EXCEPT ![voter] = result] ELSE @]
    IN  /\ m.kind = "VOTE" /\ Up(voter) /\ Arrives(m)
        /\ role' = IF behind THEN [role EXCEPT ![voter] = "CANDIDATE"] ELSE role
        /\ leader' = IF behind THEN [leader EXCEPT ![voter] = None] ELSE leader
        /\ watermark' = IF behind THEN [watermark EXCEPT ![voter] = Zero] ELSE watermark
        /\ answers' = IF behind THEN [heard EXCEPT ![voter] = NoAnswers] ELSE heard
        /\ known' = IF behind THEN [known EXCEPT ![voter] = Max(@, m.term)]
                    ELSE IF learns THEN [known EXCEPT ![candidate] = Max(@, term[voter])] ELSE known
        /\ IF result = "ACCEPT" THEN Cast(voter, candidate) ELSE UNCHANGED <<votedFor, ballots>>
        /\ <<votedFor, standing>>' # <<votedFor, standing>>
        /\ UNCHANGED <<term, ledger, commit, network, answer, calm, winners, committed, faults>>

\* DLedger's order, but for its first rule: a higher term ends the round when it is heard of.
RoundResult(n, heard) ==
    LET count(results) == Cardinality({p \in heard : answers[n][p] \in results})
    IN  IF count({"REJECT_ALREADY_HAS_LEADER"}) > 0 THEN "WAIT_TO_REVOTE"
        ELSE IF Cardinality(heard) < Quorum THEN "WAIT_TO_REVOTE"
        ELSE IF Cardinality(heard) - count(BetterLedger) < Quorum THEN "WAIT_TO_REVOTE"
        ELSE IF count({"ACCEPT"}) >= Quorum THEN "PASSED"
        ELSE IF count({"ACCEPT", "REJECT_TERM_NOT_READY"}) >= Quorum THEN "REVOTE_IMMEDIATELY"
        ELSE "WAIT_TO_VOTE_NEXT"

BecomeLeader(n) ==
    /\ role' = [role EXCEPT ![n] = "LEADER"]
    /\ leader' = [leader EXCEPT ![n] = n]
    /\ answers' = [answers EXCEPT ![n] = NoAnswers]
    /\ log' = [log EXCEPT ![n] = Append(@, [term |-> term[n], message |-> NoOp])]
    /\ winners' = winners \cup {[term |-> term[n], node |-> n]}
    /\ Send(HeartBeats(n) \cup PushToAll(n, log'[n], Len(log'[n])))
    /\ UNCHANGED known

\* The term stays, or is to be the next; the round goes on at once, or another one begins after a wait.
AskAgain(n, result) ==
    /\ known' = IF result = "WAIT_TO_VOTE_NEXT" THEN [known EXCEPT ![n] = term[n] + 1] ELSE known
    /\ answers' = [answers EXCEPT ![n] =
                       IF result = "REVOTE_IMMEDIATELY" THEN [NoAnswers EXCEPT ![n] = "ACCEPT"] ELSE NoAnswers]
    /\ UNCHANGED <<role, leader, log, winners, network>>

\* The round ends with the answers that were heard; the others are late. Calm means that it waits for all that
\* can still come.
EndRound(n, heard) ==
    /\ InRound(n)
    /\ n \in heard /\ \A p \in heard : answers[n][p] # None
    /\ calm => \A p \in Nodes : answers[n][p] # None => p \in heard
    /\ calm => \A m \in network : ~(m \in Votes(n) /\ Up(m.target) /\ answers[n][m.target] = None)
    /\ LET result == RoundResult(n, heard)
       IN  IF result = "PASSED" THEN BecomeLeader(n) ELSE AskAgain(n, result)
    /\ UNCHANGED <<file, durable, watermark, commit, answer, calm, ballots, committed, faults>>

HeartBeatCode(m) ==
    LET n == m.target
    IN  IF m.term < term[n] THEN "EXPIRED_TERM"
        ELSE IF m.term > term[n] THEN "TERM_NOT_READY"
        ELSE IF leader[n] \in {None, m.source} THEN "SUCCESS"
        ELSE "INCONSISTENT_LEADER" \* two leaders in a term: not met here

BecomeFollower(n, newLeader) ==
    /\ role' = [role EXCEPT ![n] = "FOLLOWER"]
    /\ leader' = [leader EXCEPT ![n] = newLeader]
    /\ known' = [known EXCEPT ![n] = term[n]]
    /\ answers' = [answers EXCEPT ![n] = NoAnswers]
    /\ UNCHANGED watermark

\* A leader that hears of a higher term steps down, whatever the others answer.
HandleHeartBeat(m) ==
    LET code == HeartBeatCode(m)
    IN  /\ m.kind = "HEART_BEAT" /\ Up(m.target) /\ Arrives(m)
        /\ CASE code = "SUCCESS" -> leader[m.target] = None /\ BecomeFollower(m.target, m.source)
             [] code = "TERM_NOT_READY" -> BecomeCandidate(m.target, m.term) /\ <<role, known>>' # <<role, known>>
             [] code = "EXPIRED_TERM" -> Leads(m.source, m.term) /\ BecomeCandidate(m.source, term[m.target])
             [] OTHER -> Leads(m.source, m.term) /\ BecomeCandidate(m.source, m.term + 1)
        /\ UNCHANGED <<file, ledger, commit, network, answer, calm, history>>

\* A follower did not hear of its leader for too long, or one that gave its vote away never heard of a leader.
GiveUp(n) ==
    /\ role[n] = "FOLLOWER" \/ (role[n] = "CANDIDATE" /\ known[n] = term[n] /\ votedFor[n] \notin {None, n})
    /\ calm => \A p \in Nodes : ~InRound(p) /\ ~Leads(p, term[n])
    /\ BecomeCandidate(n, term[n] + 1)
    /\ UNCHANGED <<file, ledger, commit, network, answer, calm, history>>

\* A leader did not hear of a quorum for too long.
StepDown(n) ==
    /\ role[n] = "LEADER"
    /\ ~calm
    /\ BecomeCandidate(n, term[n] + 1)
    /\ UNCHANGED <<file, ledger, commit, network, answer, calm, history>>

-----------------------------------------------------------------------------
(* Entries *)

Place(n, entry) ==
    /\ log' = [log EXCEPT ![n] = Append(@, entry)]
    /\ Send(PushToAll(n, log'[n], Len(log'[n])))

\* The leader takes a message; it is in its page cache and on its way to the others.
AppendEntry(n, m) ==
    /\ role[n] = "LEADER"
    /\ answer[m] \in {"unsent", "NOT_LEADER"}
    /\ Place(n, [term |-> term[n], message |-> m])
    /\ answer' = [answer EXCEPT ![m] = "waiting"]
    /\ UNCHANGED <<file, durable, standing, commit, calm, history>>

\* Any other node answers NOT_LEADER and stores nothing.
Refuse(n, m) ==
    /\ role[n] \in {"FOLLOWER", "CANDIDATE"}
    /\ answer[m] = "unsent"
    /\ answer' = [answer EXCEPT ![m] = "NOT_LEADER"]
    /\ UNCHANGED <<file, ledger, standing, commit, network, calm, history>>

Flush(n) ==
    /\ Up(n)
    /\ durable[n] < Len(log[n])
    /\ durable' = [durable EXCEPT ![n] = Len(log[n])]
    /\ UNCHANGED <<file, log, standing, commit, network, answer, calm, history>>

Follows(n, m) == role[n] = "FOLLOWER" /\ term[n] = m.term /\ leader[n] = m.source

Matches(n, index, entryTerm) == index <= Len(log[n]) /\ TermAt(log[n], index) = entryTerm

\* How much of a node's log counts for the commit index.
Kept(n) == durable[n]

\* INCONSISTENT_STATE without the entry before: the leader steps back by one. What contradicts the leader is cut;
\* it never is committed (CommittedStable). SUCCESS only for what is durable; until then the leader asks again.
HandlePush(m) ==
    LET n == m.target
    IN  /\ m.kind = "PUSH" /\ Follows(n, m) /\ Arrives(m)
        /\ CASE ~Matches(n, m.index - 1, m.prevTerm) ->
                    /\ Leads(m.source, m.term)
                    /\ Send({Push(m.source, n, log[m.source], m.index - 1)})
                    /\ network' # network
                    /\ UNCHANGED <<ledger, watermark>>
             [] Matches(n, m.index, m.entry.term) ->
                    /\ Leads(m.source, m.term)
                    /\ watermark[m.source][n] < m.index /\ m.index <= Kept(n)
                    /\ watermark' = [watermark EXCEPT ![m.source][n] = m.index]
                    /\ UNCHANGED <<ledger, network>>
             [] OTHER ->
                    /\ log' = [log EXCEPT ![n] = Append(Prefix(@, m.index - 1), m.entry)]
                    /\ durable' = [durable EXCEPT ![n] = Min(@, m.index - 1)]
                    /\ UNCHANGED <<watermark, network>>
        /\ UNCHANGED <<file, role, leader, known, answers, commit, answer, calm, history>>

Holders(n, index) == {p \in Peers(n) : watermark[n][p] >= index} \cup (IF Kept(n) >= index THEN {n} ELSE {})

\* What a quorum keeps; the rest is committed with it only if it ends in this term (Raft's figure 8).
CommitIndex(n) ==
    LET index == CHOOSE i \in 0..Len(log[n]) :
                     /\ IsQuorum(Holders(n, i))
                     /\ \A j \in (i + 1)..Len(log[n]) : ~IsQuorum(Holders(n, j))
    IN  IF TermAt(log[n], index) = term[n] THEN index ELSE 0

AdvanceCommit(n) ==
    /\ role[n] = "LEADER"
    /\ LET index == CommitIndex(n)
           more == [i \in 1..Len(log[n]) |-> [entry |-> log[n][i], by |-> term[n]]]
       IN  /\ index > commit[n]
           /\ commit' = [commit EXCEPT ![n] = index]
           /\ committed' = committed \o SubSeq(more, Len(committed) + 1, index)
           /\ Send(Commits(n, index))
    /\ UNCHANGED <<file, ledger, standing, answer, calm, ballots, winners, faults>>

HandleCommit(m) ==
    /\ m.kind = "COMMIT" /\ Follows(m.target, m) /\ Arrives(m)
    /\ Matches(m.target, m.index, m.entryTerm)
    /\ m.index > commit[m.target]
    /\ commit' = [commit EXCEPT ![m.target] = m.index]
    /\ UNCHANGED <<file, ledger, standing, network, answer, calm, history>>

\* The leader that took the message answers when it is committed.
Acknowledge(n, m) ==
    /\ role[n] = "LEADER"
    /\ answer[m] = "waiting"
    /\ \E i \in 1..commit[n] : log[n][i] = [term |-> term[n], message |-> m]
    /\ answer' = [answer EXCEPT ![m] = "SUCCESS"]
    /\ UNCHANGED <<file, ledger, standing, commit, network, calm, history>>

\* The client gives up; the entry may be lost, or become committed later.
Fail(m) ==
    /\ answer[m] = "waiting"
    /\ answer' = [answer EXCEPT ![m] = "unknown"]
    /\ UNCHANGED <<file, ledger, standing, commit, network, calm, history>>

\* Timers: a candidate's votes, or a leader's heartbeats, newest entry and commit index, again.
Repeat(n) ==
    /\ \/ InRound(n) /\ Send(Votes(n))
       \/ /\ role[n] = "LEADER"
          /\ Send(HeartBeats(n) \cup PushToAll(n, log[n], Len(log[n]))
                  \cup (IF commit[n] = 0 THEN {} ELSE Commits(n, commit[n])))
    /\ network' # network
    /\ UNCHANGED <<file, ledger, standing, commit, answer, calm, history>>

-----------------------------------------------------------------------------
(* Faults *)

\* The process or its machine dies: what was not durable may or may not be there afterwards, and is synced then.
Crash(n, kept) ==
    /\ Up(n) /\ ~calm
    /\ kept \in durable[n]..Len(log[n])
    /\ role' = [role EXCEPT ![n] = "DOWN"]
    /\ leader' = [leader EXCEPT ![n] = None]
    /\ known' = [known EXCEPT ![n] = term[n]]
    /\ answers' = [answers EXCEPT ![n] = NoAnswers]
    /\ watermark' = [watermark EXCEPT ![n] = Zero]
    /\ commit' = [commit EXCEPT ![n] = 0]
    /\ log' = [log EXCEPT ![n] = Prefix(@, kept)]
    /\ durable' = [durable EXCEPT ![n] = kept]
    /\ faults' = [faults EXCEPT !.crashes = @ + 1]
    /\ UNCHANGED <<file, network, answer, calm, ballots, winners, committed>>

\* A node that may have led its term does not stand in it again: it could have lost entries that others have.
StandsFrom(n) == IF votedFor[n] = n THEN term[n] + 1 ELSE term[n]

Restart(n) ==
    /\ role[n] = "DOWN"
    /\ role' = [role EXCEPT ![n] = "CANDIDATE"]
    /\ known' = [known EXCEPT ![n] = StandsFrom(n)]
    /\ UNCHANGED <<file, ledger, leader, answers, watermark, commit, network, answer, calm, history>>

Lose(m) ==
    /\ m \in network /\ ~calm
    /\ network' = network \ {m}
    /\ faults' = [faults EXCEPT !.losses = @ + 1]
    /\ UNCHANGED <<file, ledger, standing, commit, answer, calm, ballots, winners, committed>>

\* The faults are over, and a quorum is up.
Calm ==
    /\ ~calm
    /\ IsQuorum({n \in Nodes : Up(n)})
    /\ calm' = TRUE
    /\ UNCHANGED <<file, ledger, standing, commit, network, answer, history>>

-----------------------------------------------------------------------------
(* The whole *)

Receive(m) == HandleVote(m) \/ HandleHeartBeat(m) \/ HandlePush(m) \/ HandleCommit(m)

Stand(n) == RequestVotes(n) \/ (\E heard \in SUBSET Nodes : EndRound(n, heard)) \/ GiveUp(n) \/ StepDown(n)

Lead(n) == Flush(n) \/ AdvanceCommit(n) \/ Repeat(n)

Serve == \E m \in Messages : Fail(m) \/ (\E n \in Nodes : AppendEntry(n, m) \/ Refuse(n, m) \/ Acknowledge(n, m))

Fault ==
    \/ \E n \in Nodes : \E kept \in 0..Len(log[n]) : Crash(n, kept)
    \/ \E m \in network : Lose(m)

Next ==
    \/ \E m \in network : Receive(m)
    \/ \E n \in Nodes : NextTerm(n) \/ Stand(n) \/ Lead(n) \/ Restart(n)
    \/ Serve \/ Fault \/ Calm

\* Messages arrive, timers go off, disks work. A candidate's turn to ask comes though others are asking: strong.
ArriveFairness == \A s, t \in Nodes : WF_vars(\E m \in network : m.source = s /\ m.target = t /\ Receive(m))
TermFairness == \A n \in Nodes : WF_vars(NextTerm(n))
RequestFairness == \A n \in Nodes : SF_vars(RequestVotes(n))
RoundFairness == \A n \in Nodes : WF_vars(\E heard \in SUBSET Nodes : EndRound(n, heard))
GiveUpFairness == \A n \in Nodes : WF_vars(GiveUp(n))
FlushFairness == \A n \in Nodes : WF_vars(Flush(n))
CommitFairness == \A n \in Nodes : WF_vars(AdvanceCommit(n))
RepeatFairness == \A n \in Nodes : WF_vars(Repeat(n))

Fairness ==
    /\ ArriveFairness /\ TermFairness /\ RequestFairness /\ RoundFairness /\ GiveUpFairness
    /\ FlushFairness /\ CommitFairness /\ RepeatFairness

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. Names are those of spec/invariants.toml. *)

\* RAFT-1
ElectionSafety == \A a, b \in winners : a.term = b.term => a.node = b.node

\* RAFT-2
LeaderAppendOnly ==
    [][\A n \in Nodes : role[n] = "LEADER" /\ role'[n] = "LEADER" => IsPrefix(log[n], log'[n])]_vars

\* RAFT-3
LogMatching ==
    \A a, b \in Nodes :
        \A i \in 1..Min(Len(log[a]), Len(log[b])) :
            log[a][i].term = log[b][i].term => Prefix(log[a], i) = Prefix(log[b], i)

\* RAFT-4
LeaderCompleteness ==
    \A n \in Nodes :
        role[n] = "LEADER" =>
            \A i \in 1..Len(committed) :
                committed[i].by < term[n] => i <= Len(log[n]) /\ log[n][i] = committed[i].entry

\* RAFT-5
CommittedStable ==
    \A n \in Nodes :
        /\ commit[n] <= Len(log[n]) /\ commit[n] <= Len(committed)
        /\ \A i \in 1..commit[n] : log[n][i] = committed[i].entry

\* RAFT-6
VoteOncePerTerm == \A n \in Nodes : Cardinality(ballots[n].candidates) <= 1

(* Consistency: what is true of every state and what a step may do, so that a wrong step shows where it is made. The
   actions' own words are not used here. *)

Most(nodes) == 2 * Cardinality(nodes) > Cardinality(Nodes)

Last(entries) == IF entries = <<>> THEN 0 ELSE entries[Len(entries)].term

Asks(n) == \E p \in Nodes : answers[n][p] # None

Won(n, t) == [term |-> t, node |-> n] \in winners

\* What a node is and what it remembers agree.
RolesAgree ==
    \A n \in Nodes :
        /\ role[n] # "CANDIDATE" => known[n] = term[n] /\ ~Asks(n)
        /\ role[n] # "LEADER" => \A p \in Nodes : watermark[n][p] = 0
        /\ role[n] = "LEADER" => leader[n] = n /\ Won(n, term[n])
        /\ role[n] = "FOLLOWER" => leader[n] \notin {n, None} /\ Won(leader[n], term[n])
        /\ role[n] \in {"CANDIDATE", "DOWN"} => leader[n] = None
        /\ role[n] = "DOWN" => commit[n] = 0 /\ durable[n] = Len(log[n])
        /\ Asks(n) => votedFor[n] = n /\ known[n] = term[n] /\ answers[n][n] = "ACCEPT"

\* A vote that counts was given, and the files tell of it.
VotesAgree ==
    \A n \in Nodes :
        /\ votedFor[n] # None => ballots[n] = [term |-> term[n], candidates |-> {votedFor[n]}]
        /\ \A p \in Nodes :
            answers[n][p] = "ACCEPT" =>
                ballots[p].term > term[n] \/ (ballots[p].term = term[n] /\ n \in ballots[p].candidates)

\* No term is skipped by all.
TermsOneByOne == \A n \in Nodes : known[n] <= term[n] + 1 \/ \E p \in Nodes : known[n] <= term[p]

\* Each term's entries begin with a no-op, and a message is appended once.
LogsOrdered ==
    \A n \in Nodes :
        \A i \in 1..Len(log[n]) :
            LET before == Last(SubSeq(log[n], 1, i - 1))
                entry == log[n][i]
            IN  /\ before <= entry.term /\ entry.term <= term[n]
                /\ before # entry.term <=> entry.message = NoOp
                /\ \A j \in 1..(i - 1) : entry.message # NoOp => log[n][j].message # entry.message

\* A leader's followers keep, durably, what it believes that they keep.
WatermarkTrue ==
    \A n, p \in Nodes :
        watermark[n][p] > 0 /\ term[p] = term[n] =>
            /\ watermark[n][p] <= durable[p]
            /\ SubSeq(log[p], 1, watermark[n][p]) = SubSeq(log[n], 1, watermark[n][p])

\* What is on its way was true when it was sent, and is not void.
MessagesTrue ==
    \A m \in network :
        LET own == log[m.source]
        IN  /\ m.source # m.target /\ m.term <= term[m.source]
            /\ term[m.target] > m.term => m.kind \in {"VOTE", "HEART_BEAT"} /\ term[m.source] = m.term
            /\ IF m.kind = "VOTE"
               THEN /\ ballots[m.source].term > m.term \/ m.source \in ballots[m.source].candidates
                    /\ term[m.source] = m.term /\ Asks(m.source) => m.endIndex = Len(own) /\ m.endTerm = Last(own)
               ELSE Won(m.source, m.term)
            /\ m.kind = "PUSH" /\ role[m.source] = "LEADER" /\ term[m.source] = m.term =>
                own[m.index] = m.entry /\ Last(SubSeq(own, 1, m.index - 1)) = m.prevTerm
            /\ m.kind = "COMMIT" => m.index <= Len(committed) /\ committed[m.index].entry.term = m.entryTerm

\* A client is told the truth.
AnswersTrue ==
    \A m \in Messages :
        /\ answer[m] = "SUCCESS" => \E i \in 1..Len(committed) : committed[i].entry.message = m
        /\ answer[m] \in {"unsent", "NOT_LEADER"} =>
            \A n \in Nodes : \A i \in 1..Len(log[n]) : log[n][i].message # m

\* Terms rise, and a vote stands as long as its term, whatever happens to the node.
VotesStand ==
    [][\A n \in Nodes :
        IF term'[n] = term[n] THEN votedFor[n] # None => votedFor'[n] = votedFor[n]
        ELSE term'[n] > term[n] /\ votedFor'[n] = None]_vars

\* A term is given up when it is lost: by a vote for another, by a round that a quorum answered, to a later term.
TermsGivenUp ==
    [][\A n \in Nodes :
        role[n] = "CANDIDATE" /\ known[n] = term[n] /\ known'[n] > known[n] =>
            \/ votedFor[n] \notin {None, n}
            \/ Most({p \in Nodes : answers[n][p] # None})
            \/ Asks(n) /\ \E p \in Nodes : term[p] = known'[n]
            \/ \E m \in network : m.target = n /\ m.term = known'[n]]_vars

\* A vote goes to whom asked for it in this term, with a log at least as good.
VotesEarned ==
    [][\A n \in Nodes :
        votedFor'[n] \notin {votedFor[n], None} =>
            /\ role[n] # "DOWN" /\ term'[n] = term[n]
            /\ votedFor'[n] = n \/ \E m \in network :
                /\ m.kind = "VOTE" /\ m.source = votedFor'[n] /\ m.target = n /\ m.term = term[n]
                /\ m.endTerm > Last(log[n]) \/ (m.endTerm = Last(log[n]) /\ m.endIndex >= Len(log[n]))]_vars

\* What a candidate is answered is how it stands with the voter.
AnswersEarned ==
    [][\A n, p \in Nodes :
        p # n /\ answers'[n][p] \notin {answers[n][p], None} =>
            LET result == answers'[n][p]
                ahead == Last(log[p]) > Last(log[n])
            IN  /\ Asks(n) /\ role[p] # "DOWN" /\ term[p] <= term[n]
                /\ result = "ACCEPT" => term[p] = term[n] /\ votedFor'[p] = n
                /\ result = "REJECT_TERM_NOT_READY" <=> term[p] < term[n] /\ result \notin BetterLedger
                /\ result = "REJECT_ALREADY_VOTED" => votedFor[p] \notin {None, n} /\ leader[p] = None
                /\ result = "REJECT_ALREADY_HAS_LEADER" => leader[p] \notin {None, n}
                /\ result = "REJECT_EXPIRED_LEDGER_TERM" <=> ahead
                /\ result = "REJECT_SMALL_LEDGER_END_INDEX" <=>
                       Last(log[p]) = Last(log[n]) /\ Len(log[p]) > Len(log[n])]_vars

\* Who leads was elected, and tells all others.
Elected ==
    [][\A n \in Nodes :
        role[n] # "LEADER" /\ role'[n] = "LEADER" =>
            /\ Most({p \in Nodes : answers[n][p] = "ACCEPT"})
            /\ winners' = winners \cup {[term |-> term[n], node |-> n]}
            /\ Len(log'[n]) = Len(log[n]) + 1
            /\ \A p \in Nodes \ {n} :
                (IF term[p] > term[n] THEN {"HEART_BEAT"} ELSE {"HEART_BEAT", "PUSH"}) \subseteq
                    {m.kind : m \in {o \in network' : o.source = n /\ o.target = p /\ o.term = term[n]}}]_vars

\* It is a standing candidate that asks, and a leader that heads.
SentByWhoStands ==
    [][\A m \in network' \ network :
        /\ term'[m.source] = m.term
        /\ m.kind = "VOTE" => answers'[m.source][m.source] = "ACCEPT"
        /\ m.kind # "VOTE" => role'[m.source] = "LEADER"
        /\ m.kind = "COMMIT" => m.index = commit'[m.source]]_vars

\* A log grows at a leader's end; a follower's, by what it was pushed, which replaces only what contradicts it; a crash
\* takes what was not durable. What is new is not durable yet.
LogsChange ==
    [][\A n \in Nodes :
        log'[n] # log[n] =>
            LET end == Len(log'[n])
            IN  /\ role'[n] = "DOWN" => end >= durable[n] /\ log'[n] = SubSeq(log[n], 1, end)
                /\ role'[n] # "DOWN" =>
                    /\ SubSeq(log'[n], 1, end - 1) = SubSeq(log[n], 1, end - 1)
                    /\ durable'[n] <= durable[n] /\ durable'[n] < end
                /\ role'[n] = "LEADER" => end = Len(log[n]) + 1 /\ log'[n][end].term = term[n]
                /\ role'[n] = "FOLLOWER" =>
                    /\ end <= Len(log[n]) => log'[n][end].term # log[n][end].term
                    /\ \E m \in network :
                        /\ m.kind = "PUSH" /\ m.source = leader[n] /\ m.target = n /\ m.term = term[n]
                        /\ m.index = end /\ m.entry = log'[n][end]
                /\ role'[n] # "CANDIDATE"]_vars

\* What is durable stays, but for what a follower replaces.
DurableStays ==
    [][\A n \in Nodes : durable'[n] < durable[n] => role'[n] = "FOLLOWER" /\ Len(log'[n]) = durable'[n] + 1]_vars

\* What is committed stays so; more is, when a quorum keeps it durably and its last entry is of its leader's term.
CommittedByQuorum ==
    [][committed' # committed =>
        LET end == Len(committed')
        IN  /\ end > Len(committed) /\ SubSeq(committed', 1, Len(committed)) = committed
            /\ committed'[end].entry.term = committed'[end].by
            /\ Most({n \in Nodes :
                       /\ durable[n] >= end
                       /\ \A i \in (Len(committed) + 1)..end : log[n][i] = committed'[i].entry})]_vars

\* Answers are given in order; the leader that took a message tells of its success.
AnswersChange ==
    [][\A m \in Messages :
        answer'[m] # answer[m] =>
            /\ answer'[m] = "waiting" =>
                /\ answer[m] \in {"unsent", "NOT_LEADER"}
                /\ \E n \in Nodes : log'[n] = Append(log[n], [term |-> term[n], message |-> m])
            /\ answer'[m] = "NOT_LEADER" => answer[m] = "unsent" /\ log' = log
            /\ answer'[m] \in {"SUCCESS", "unknown"} => answer[m] = "waiting" /\ log' = log
            /\ answer'[m] = "SUCCESS" =>
                \E n \in Nodes :
                    role[n] = "LEADER" /\ \E i \in 1..commit[n] : log[n][i] = [term |-> term[n], message |-> m]]_vars

\* A node that is down does nothing but start, and then not in a term that it may have led.
DownIsSilent ==
    [][\A n \in Nodes :
        role[n] = "DOWN" =>
            /\ log'[n] = log[n] /\ term'[n] = term[n] /\ votedFor'[n] = votedFor[n]
            /\ role'[n] # "DOWN" =>
                role'[n] = "CANDIDATE" /\ (IF votedFor[n] = n THEN known'[n] > term[n] ELSE known'[n] = term[n])]_vars

\* A crash is one node's.
OneCrash ==
    [][LET died == {n \in Nodes : role[n] # "DOWN" /\ role'[n] = "DOWN"}
       IN  /\ died # {} => faults' = [faults EXCEPT !.crashes = @ + 1]
           /\ faults'.crashes # faults.crashes => Cardinality(died) = 1]_vars

\* A loss is one message's.
OneLoss ==
    [][faults'.losses # faults.losses =>
        faults'.losses = faults.losses + 1 /\ Cardinality(network \ network') = 1]_vars

\* Without a loss, only that goes which nobody cares for.
NothingVanishes ==
    [][faults'.losses = faults.losses =>
        \A m \in network \ network' :
            term'[m.target] > m.term /\ (m.kind \in {"PUSH", "COMMIT"} \/ term'[m.source] > m.term)]_vars

\* Once it is calm nothing fails, nobody leaves a leader but for a later term, and who has gone is not heard any more.
CalmStays ==
    [][calm =>
        /\ calm' /\ faults' = faults
        /\ \A n \in Nodes :
            /\ role[n] \in {"LEADER", "FOLLOWER"} /\ role'[n] # role[n] =>
                \/ \E p \in Nodes : term[p] > term[n]
                \/ role[leader[n]] # "LEADER" \/ term[leader[n]] # term[n]
            /\ role[n] # "FOLLOWER" /\ role'[n] = "FOLLOWER" =>
                role[leader'[n]] = "LEADER" /\ term[leader'[n]] = term[n]
            /\ role'[n] = "FOLLOWER" /\ (log'[n] # log[n] \/ commit'[n] # commit[n]) =>
                role[leader[n]] = "LEADER" /\ term[leader[n]] = term[n]
            /\ votedFor'[n] \notin {votedFor[n], n, None} =>
                Asks(votedFor'[n]) /\ term[votedFor'[n]] = term[n]]_vars

\* Once it is calm, one asks at a time, and first whose log is best.
CalmRounds ==
    [][calm =>
        \A n \in Nodes :
            /\ ~Asks(n) /\ answers'[n] # answers[n] =>
                \A p \in Nodes :
                    /\ ~Asks(p)
                    /\ role[p] # "DOWN" => ~(Last(log[p]) > Last(log[n]))
                    /\ role[p] # "DOWN" /\ Last(log[p]) = Last(log[n]) => Len(log[p]) <= Len(log[n])
            /\ ~Asks(n) /\ known'[n] > known[n] /\ (\E p \in Nodes : Asks(p)) =>
                \/ role[n] = "DOWN"
                \/ \E p \in Nodes : term[p] >= known'[n]]_vars

\* What may happen can happen: nothing is kept only because this module forbids what would break it. What must happen
\* once it is calm is liveness.
NodesNeverStuck ==
    ~calm =>
        \A n \in Nodes :
            LET heard == {p \in Nodes : answers[n][p] # None}
                with(results) == {p \in heard : answers[n][p] \in results}
                ready == with({"ACCEPT", "REJECT_TERM_NOT_READY"})
                led == with({"REJECT_ALREADY_HAS_LEADER"}) # {}
                mine == {m \in network : m.source = n /\ m.term = term[n]}
                keeps(p, i) == (IF p = n THEN durable[n] ELSE watermark[n][p]) >= i
                sent(kind, p) == {m \in mine : m.kind = kind /\ m.target = p}
                newest(p) == {m \in sent("PUSH", p) : m.index = Len(log[n])}
            IN  /\ role[n] = "CANDIDATE" /\ known[n] > term[n] => ENABLED (NextTerm(n) /\ term'[n] = known[n])
                /\ role[n] = "CANDIDATE" /\ known[n] = term[n] /\ votedFor[n] \in {None, n} /\ heard = {} =>
                    ENABLED (RequestVotes(n) /\ {m.target : m \in {o \in network' : o.kind = "VOTE" /\ o.source = n}}
                                                    = Nodes \ {n})
                /\ Most(with({"ACCEPT"})) => ENABLED (EndRound(n, with({"ACCEPT"})) /\ role'[n] = "LEADER")
                /\ heard # {} /\ ~Most({n}) => ENABLED (EndRound(n, {n}) /\ answers'[n][n] = None /\ known' = known)
                /\ led => ENABLED (EndRound(n, heard) /\ known' = known /\ role' = role)
                /\ Most(ready) /\ ~Most(with({"ACCEPT"})) /\ ~led =>
                    ENABLED (EndRound(n, heard) /\ answers'[n][n] = "ACCEPT" /\ known' = known)
                /\ Most(heard \ with(BetterLedger)) /\ ~Most(ready) /\ ~led =>
                    ENABLED (EndRound(n, heard) /\ known'[n] = term[n] + 1)
                /\ role[n] = "FOLLOWER" => ENABLED (GiveUp(n) /\ role'[n] = "CANDIDATE" /\ known'[n] = term[n] + 1)
                /\ role[n] = "CANDIDATE" /\ known[n] = term[n] /\ votedFor[n] \notin {None, n} =>
                    ENABLED (GiveUp(n) /\ known'[n] = term[n] + 1)
                /\ role[n] = "LEADER" =>
                    /\ ENABLED (StepDown(n) /\ role'[n] = "CANDIDATE" /\ known'[n] = term[n] + 1)
                    /\ \A i \in (commit[n] + 1)..Len(log[n]) :
                        log[n][i].term = term[n] /\ Most({p \in Nodes : keeps(p, i)}) =>
                            ENABLED (Lead(n) /\ commit'[n] >= i /\ Len(committed') >= i)
                    /\ \A p \in Nodes \ {n} :
                        /\ sent("HEART_BEAT", p) = {} =>
                            ENABLED (Lead(n) /\ \E m \in network' \ network : m.kind = "HEART_BEAT" /\ m.target = p)
                        /\ term[p] <= term[n] /\ newest(p) = {} =>
                            ENABLED (Lead(n) /\ \E m \in network' \ network : m.kind = "PUSH" /\ m.target = p)
                        /\ commit[n] > 0 /\ term[p] <= term[n] /\ sent("COMMIT", p) = {} =>
                            ENABLED (Lead(n) /\ \E m \in network' \ network : m.kind = "COMMIT" /\ m.target = p)
                /\ heard # {} /\ Cardinality({m \in mine : m.kind = "VOTE"}) < Cardinality(Nodes) - 1 =>
                    ENABLED (Lead(n) /\ \E m \in network' \ network : m.kind = "VOTE")
                /\ role[n] # "DOWN" /\ durable[n] < Len(log[n]) => ENABLED (Lead(n) /\ durable'[n] = Len(log[n]))
                /\ role[n] # "DOWN" =>
                    \A kept \in durable[n]..Len(log[n]) :
                        ENABLED (Crash(n, kept) /\ role'[n] = "DOWN" /\ Len(log'[n]) = kept)
                /\ role[n] = "DOWN" =>
                    ENABLED (Restart(n) /\ role'[n] = "CANDIDATE" /\ (votedFor[n] = n \/ known'[n] = term[n]))

ClientsNeverStuck ==
    \A m \in Messages :
        /\ answer[m] = "waiting" => ENABLED <<Fail(m)>>_answer
        /\ \A n \in Nodes :
            /\ role[n] = "LEADER" /\ answer[m] \in {"unsent", "NOT_LEADER"} =>
                ENABLED (AppendEntry(n, m) /\ answer'[m] = "waiting" /\
                         \A p \in Nodes \ {n} :
                            term[p] > term[n] \/ \E o \in network' \ network : o.kind = "PUSH" /\ o.target = p)
            /\ role[n] \in {"FOLLOWER", "CANDIDATE"} /\ answer[m] = "unsent" => ENABLED <<Refuse(n, m)>>_answer
            /\ role[n] = "LEADER" /\ answer[m] = "waiting" =>
                \A i \in 1..commit[n] :
                    log[n][i] = [term |-> term[n], message |-> m] =>
                        ENABLED (Acknowledge(n, m) /\ answer'[m] = "SUCCESS")

MessagesNeverStuck ==
    ~calm =>
        /\ Most({n \in Nodes : role[n] # "DOWN"}) => ENABLED <<Calm>>_calm
        /\ \A m \in network :
            LET n == m.target
                leads == role[m.source] = "LEADER" /\ term[m.source] = m.term
                pushed(index) == \E o \in network : o.kind = "PUSH" /\ o.target = n /\ o.index = index
                follows == role[n] = "FOLLOWER" /\ term[n] = m.term
            IN  /\ ENABLED <<Lose(m)>>_network
                /\ m.kind = "VOTE" /\ role[n] # "DOWN" =>
                    LET wins == m.endTerm > Last(log[n]) \/ (m.endTerm = Last(log[n]) /\ m.endIndex >= Len(log[n]))
                    IN  /\ wins /\ term[n] = m.term /\ votedFor[n] = None =>
                            ENABLED (Receive(m) /\ votedFor'[n] = m.source)
                        /\ wins /\ known[n] < m.term => ENABLED (Receive(m) /\ known'[n] = m.term)
                        /\ Asks(m.source) /\ term[m.source] = m.term /\ answers[m.source][n] = None =>
                            ENABLED (Receive(m) /\ IF term[n] > m.term THEN known'[m.source] = term[n]
                                                   ELSE answers'[m.source][n] # None)
                /\ m.kind = "HEART_BEAT" /\ role[n] # "DOWN" =>
                    /\ term[n] = m.term /\ leader[n] = None => ENABLED (Receive(m) /\ leader'[n] = m.source)
                    /\ known[n] < m.term => ENABLED (Receive(m) /\ role'[n] = "CANDIDATE" /\ known'[n] = m.term)
                    /\ term[n] > m.term /\ leads =>
                        ENABLED (Receive(m) /\ role'[m.source] = "CANDIDATE" /\ known'[m.source] = term[n])
                /\ m.kind = "PUSH" /\ follows =>
                    LET fits == m.index <= Len(log[n]) + 1 /\ Last(SubSeq(log[n], 1, m.index - 1)) = m.prevTerm
                        there == m.index <= Len(log[n]) /\ log[n][m.index].term = m.entry.term
                    IN  /\ fits /\ ~there => ENABLED (Receive(m) /\ log'[n][m.index] = m.entry)
                        /\ there /\ leads /\ watermark[m.source][n] < m.index /\ m.index <= durable[n] =>
                            ENABLED (Receive(m) /\ watermark'[m.source][n] = m.index)
                        /\ ~fits /\ leads /\ ~pushed(m.index - 1) =>
                            ENABLED (Receive(m) /\ \E o \in network' : o.kind = "PUSH" /\ o.index = m.index - 1)
                /\ m.kind = "COMMIT" /\ follows /\ commit[n] < m.index /\ m.index <= Len(log[n]) =>
                    (log[n][m.index].term = m.entryTerm => ENABLED (Receive(m) /\ commit'[n] = m.index))

-----------------------------------------------------------------------------
(* Liveness *)

Led(n) == role[n] = "LEADER" /\ \A p \in Peers(n) : Up(p) => leader[p] = n /\ term[p] = term[n]

\* RAFT-7: of all the nodes that are up
LeaderEventually == calm ~> \E n \in Nodes : Led(n)

Converged(n) == Led(n) /\ \A p \in Nodes : Up(p) => log[p] = log[n] /\ commit[p] = Len(log[n])

\* RAFT-8
LogsConverge == calm ~> \E n \in Nodes : Converged(n)

=============================================================================
