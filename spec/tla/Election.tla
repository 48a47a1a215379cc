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

-----------------------------------------------------------------------------
(* Liveness *)

Led(n) == role[n] = "LEADER" /\ \A p \in Peers(n) : Up(p) => leader[p] = n /\ term[p] = term[n]

\* RAFT-7: of all the nodes that are up
LeaderEventually == calm ~> \E n \in Nodes : Led(n)

Converged(n) == Led(n) /\ \A p \in Nodes : Up(p) => log[p] = log[n] /\ commit[p] = Len(log[n])

\* RAFT-8
LogsConverge == calm ~> \E n \in Nodes : Converged(n)

=============================================================================
