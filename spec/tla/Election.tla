------------------------------ MODULE Election ------------------------------
(***************************************************************************)
(* DLedger's Raft, as it should be. Nodes vote for the leader of a term.   *)
(* The leader appends messages to its log and pushes them to its           *)
(* followers. Entries that a quorum keeps durably are committed and        *)
(* acknowledged. Network messages may be lost, repeated and reordered.     *)
(* Nodes may crash and keep their durable data. The rules and response     *)
(* codes are DLedger's, except for the unsound ones. ElectionShipped       *)
(* models the released rules.                                              *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - Time: a timer may fire at any moment until `calm` holds.             *)
(*  - The network: a message remains in it, so it can arrive late, out of  *)
(*    order, repeatedly or never; Lose removes a message permanently,      *)
(*    which for safety equals never arriving and matters only for          *)
(*    liveness.                                                            *)
(*  - Lost terms: a node that voted for another node, or that may have led *)
(*    the term, next stands in a later term; DLedger first asks in the     *)
(*    current term, without success.                                       *)
(*  - Void messages: a message that can change neither end, because both   *)
(*    are past its term, is dropped.                                       *)
(*  - Answers: an answer reaches its waiting caller in the step that       *)
(*    created it, or never; a late answer is modelled as a late request,   *)
(*    because an answer stays true in the term in which it counts.         *)
(*  - Push: COMPARE, TRUNCATE and APPEND are one message that contains the *)
(*    entry and the term of the previous entry (as in later versions of    *)
(*    DLedger), the commit index has a separate message, and each push     *)
(*    contains one entry.                                                  *)
(*  - Disks: an fsync is one step and honest; bytes after a cut never      *)
(*    reappear.                                                            *)
(*  - Configuration: the members are fixed and known to each other;        *)
(*    deletion and snapshots, with their response codes, are left out.     *)
(*  - Transfers and reads: LeaderLease models them; here a member that     *)
(*    takes over gives up, and a leader may step down at any time.         *)
(*  - Voters that wait for their leader: LeaderLease models them; here a   *)
(*    request that a voter leaves unanswered is late or lost.              *)
(*  - Clients: a message is sent once; any result other than success or    *)
(*    NOT_LEADER (timeout, TERM_CHANGED, a broken connection) is           *)
(*    "unknown".                                                           *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Nodes,    \* the members of the group
    Messages  \* the messages that clients may append, strings

None == "none"
NoOp == "noop" \* the first entry of a leader in its term: entries of older terms are committed through it

ASSUME Nodes # {} /\ None \notin Nodes /\ NoOp \notin Messages

-----------------------------------------------------------------------------
(* Rules that are functions of their arguments only *)

Quorum == Cardinality(Nodes) \div 2 + 1

IsQuorum(nodes) == Cardinality(nodes) >= Quorum

\* Is a log that ends at (endTerm, endIndex) at least as up to date as one that ends at (myTerm, myIndex)?
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

VARIABLE role      \* the role of each node
RoleOK == role \in [Nodes -> {"CANDIDATE", "FOLLOWER", "LEADER", "DOWN"}]

VARIABLE term      \* the current term of each node; durable
TermOK == term \in [Nodes -> Nat]

VARIABLE votedFor  \* the candidate that the node voted for in this term; durable, written together with the term
VotedForOK == votedFor \in [Nodes -> Nodes \cup {None}]

VARIABLE log       \* the entries of each node as a reader of the files sees them: page cache over disk
LogOK == log \in [Nodes -> Seq(Entries)]

VARIABLE durable   \* the number of durable entries
DurableOK == \A n \in Nodes : durable[n] \in 0..Len(log[n])

VARIABLE leader    \* memory: the leader of this term, if the node knows it
LeaderOK == leader \in [Nodes -> Nodes \cup {None}]

VARIABLE known     \* memory: the term that the node will enter next, if larger than its own (needIncrease)
KnownOK == \A n \in Nodes : known[n] \in Nat /\ known[n] >= term[n]

VARIABLE answers   \* memory of a candidate: the answers in its round of votes, including its own vote
AnswersOK == answers \in [Nodes -> [Nodes -> VoteResults \cup {None}]]

VARIABLE watermark \* memory of a leader: the length of each follower's durable prefix that is known to match
WatermarkOK == watermark \in [Nodes -> [Nodes -> Nat]]

VARIABLE commit    \* memory: the number of entries that the node knows to be committed
CommitOK == commit \in [Nodes -> Nat]

VARIABLE network   \* messages in flight
VoteRequests == [kind : {"VOTE"}, source : Nodes, target : Nodes, term : Nat, endIndex : Nat, endTerm : Nat]
HeartBeatRequests == [kind : {"HEART_BEAT"}, source : Nodes, target : Nodes, term : Nat]
PushRequests ==
    [kind : {"PUSH"}, source : Nodes, target : Nodes, term : Nat, index : Nat \ {0}, prevTerm : Nat, entry : Entries]
CommitRequests ==
    [kind : {"COMMIT"}, source : Nodes, target : Nodes, term : Nat, index : Nat \ {0}, entryTerm : Nat]
Requests == VoteRequests \cup HeartBeatRequests \cup PushRequests \cup CommitRequests
NetworkOK == network \subseteq Requests

VARIABLE answer    \* the status of each message, as its client knows it
AnswerOK == answer \in [Messages -> {"unsent", "waiting", "SUCCESS", "NOT_LEADER", "unknown"}]

VARIABLE calm      \* TRUE after the last fault: no message is lost, late or repeated, and timers fire when they should
CalmOK == calm \in BOOLEAN

VARIABLE ballots   \* history: the votes that each node gave, in the latest term in which it voted
BallotsOK == ballots \in [Nodes -> [term : Nat, candidates : SUBSET Nodes]]

VARIABLE winners   \* history: the leader of each term
WinnersOK == winners \subseteq [term : Nat, node : Nodes]

VARIABLE committed \* history: the committed entries, each with the term of the leader that committed it
CommittedOK == committed \in Seq([entry : Entries, by : Nat])

VARIABLE faults    \* history: the number of crashes and losses
FaultsOK == faults \in [crashes : Nat, losses : Nat]

file == <<term, votedFor>>
ledger == <<log, durable>>
nodeState == <<role, leader, known, answers, watermark>>
history == <<ballots, winners, committed, faults>>
vars == <<file, ledger, nodeState, commit, network, answer, calm, history>>

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

\* The entry at an index of the leader's log, with the term of the previous entry.
Push(n, p, entries, index) ==
    [kind |-> "PUSH", source |-> n, target |-> p, term |-> term[n], index |-> index,
     prevTerm |-> TermAt(entries, index - 1), entry |-> entries[index]]

PushToAll(n, entries, index) == {Push(n, p, entries, index) : p \in Peers(n)}

\* The committed prefix, identified by the term of its last entry: equal index and term imply equal prefixes.
Commits(n, index) ==
    {[kind |-> "COMMIT", source |-> n, target |-> p, term |-> term[n],
      index |-> index, entryTerm |-> TermAt(log[n], index)] : p \in Peers(n)}

\* The target refuses the message, and the source does not need it any more.
Void(m, terms) == terms[m.target] > m.term /\ (m.kind \in {"PUSH", "COMMIT"} \/ terms[m.source] > m.term)

Send(messages) == network' = network \cup {m \in messages : ~Void(m, term)}

\* In the calm phase, a message arrives only while its sender is still in that term and role.
Arrives(m) == calm => term[m.source] = m.term /\ (IF m.kind = "VOTE" THEN InRound(m.source) ELSE role[m.source] = "LEADER")

-----------------------------------------------------------------------------
(* Elections *)

\* The node received a higher term t, or chooses t because its own term is lost.
BecomeCandidate(n, t) ==
    /\ role' = [role EXCEPT ![n] = "CANDIDATE"]
    /\ leader' = [leader EXCEPT ![n] = None]
    /\ known' = [known EXCEPT ![n] = Max(@, t)]
    /\ answers' = [answers EXCEPT ![n] = NoAnswers]
    /\ watermark' = [watermark EXCEPT ![n] = Zero]

\* The new term is durable before any other node sees it.
NextTerm(n) ==
    /\ role[n] = "CANDIDATE"
    /\ known[n] > term[n]
    /\ term' = [term EXCEPT ![n] = known[n]]
    /\ votedFor' = [votedFor EXCEPT ![n] = None]
    /\ network' = {m \in network : ~Void(m, term')}
    /\ UNCHANGED <<ledger, nodeState, commit, answer, calm, history>>

Cast(n, candidate) ==
    /\ votedFor' = [votedFor EXCEPT ![n] = candidate]
    /\ ballots' = [ballots EXCEPT ![n] =
                       IF @.term = term[n] THEN [@ EXCEPT !.candidates = @ \cup {candidate}]
                       ELSE IF @.term < term[n] THEN [term |-> term[n], candidates |-> {candidate}] ELSE @]

\* A round of votes begins with the candidate's own vote. Waiting times are random, and longer for a candidate
\* that was rejected because of its log. Therefore in the calm phase rounds do not overlap, and the node with
\* the better log asks first.
RequestVotes(n) ==
    /\ role[n] = "CANDIDATE"
    /\ known[n] = term[n] /\ votedFor[n] \in {None, n} /\ ~InRound(n)
    /\ calm => \A p \in Nodes : ~InRound(p) /\ (Up(p) => EndsAsWellAs(log[n], log[p]))
    /\ Cast(n, n)
    /\ answers' = [answers EXCEPT ![n][n] = "ACCEPT"]
    /\ Send(Votes(n))
    /\ UNCHANGED <<term, ledger, role, leader, known, watermark, commit, answer, calm, winners, committed, faults>>

\* DLedger's order: first the logs, then the terms. The case before the last guards against a lost term, which
\* does not occur here.
VoteResult(m) ==
    LET n == m.target
        endTerm == EndTerm(log[n])
    IN  IF m.endTerm < endTerm THEN "REJECT_EXPIRED_LEDGER_TERM"
        ELSE IF ~UpToDate(m.endTerm, m.endIndex, endTerm, Len(log[n])) THEN "REJECT_SMALL_LEDGER_END_INDEX"
        ELSE IF m.term < term[n] THEN "REJECT_EXPIRED_VOTE_TERM"
        ELSE IF m.term = term[n] /\ votedFor[n] \notin {None, m.source}
            THEN IF leader[n] # None THEN "REJECT_ALREADY_HAS_LEADER" ELSE "REJECT_ALREADY_VOTED"
        ELSE IF m.term > term[n] THEN "REJECT_TERM_NOT_READY"
        ELSE IF m.term < endTerm THEN "REJECT_TERM_SMALL_THAN_LEDGER"
        ELSE "ACCEPT"

\* A voter behind the candidate's term gives up its role. Each answer contains the voter's term. A candidate
\* that is behind ends its round.
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
        /\ <<votedFor, nodeState>>' # <<votedFor, nodeState>>
        /\ UNCHANGED <<term, ledger, commit, network, answer, calm, winners, committed, faults>>

\* DLedger's order, except for its first rule: here a higher term ends the round as soon as the candidate
\* receives it.
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

\* The node stays in its term, or the next term follows. A new round begins at once, or after a wait.
AskAgain(n, result) ==
    /\ known' = IF result = "WAIT_TO_VOTE_NEXT" THEN [known EXCEPT ![n] = term[n] + 1] ELSE known
    /\ answers' = [answers EXCEPT ![n] =
                       IF result = "REVOTE_IMMEDIATELY" THEN [NoAnswers EXCEPT ![n] = "ACCEPT"] ELSE NoAnswers]
    /\ UNCHANGED <<role, leader, log, winners, network>>

\* The round ends with the answers received so far; the others are late. In the calm phase the candidate waits
\* for all answers that can still arrive.
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
        ELSE "INCONSISTENT_LEADER" \* two leaders in one term: does not occur here

BecomeFollower(n, newLeader) ==
    /\ role' = [role EXCEPT ![n] = "FOLLOWER"]
    /\ leader' = [leader EXCEPT ![n] = newLeader]
    /\ known' = [known EXCEPT ![n] = term[n]]
    /\ answers' = [answers EXCEPT ![n] = NoAnswers]
    /\ UNCHANGED watermark

\* A leader that receives a higher term steps down, regardless of the other answers.
HandleHeartBeat(m) ==
    LET code == HeartBeatCode(m)
    IN  /\ m.kind = "HEART_BEAT" /\ Up(m.target) /\ Arrives(m)
        /\ CASE code = "SUCCESS" -> leader[m.target] = None /\ BecomeFollower(m.target, m.source)
             [] code = "TERM_NOT_READY" -> BecomeCandidate(m.target, m.term) /\ <<role, known>>' # <<role, known>>
             [] code = "EXPIRED_TERM" -> Leads(m.source, m.term) /\ BecomeCandidate(m.source, term[m.target])
             [] OTHER -> Leads(m.source, m.term) /\ BecomeCandidate(m.source, m.term + 1)
        /\ UNCHANGED <<file, ledger, commit, network, answer, calm, history>>

\* A follower received no heartbeat from its leader for too long, or a node that voted for another candidate
\* never received a heartbeat.
GiveUp(n) ==
    /\ role[n] = "FOLLOWER" \/ (role[n] = "CANDIDATE" /\ known[n] = term[n] /\ votedFor[n] \notin {None, n})
    /\ calm => \A p \in Nodes : ~InRound(p) /\ ~Leads(p, term[n])
    /\ BecomeCandidate(n, term[n] + 1)
    /\ UNCHANGED <<file, ledger, commit, network, answer, calm, history>>

\* A leader received no answers from a quorum for too long.
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

\* The leader appends a message to its page cache and sends it to the other nodes.
AppendEntry(n, m) ==
    /\ role[n] = "LEADER"
    /\ answer[m] \in {"unsent", "NOT_LEADER"}
    /\ Place(n, [term |-> term[n], message |-> m])
    /\ answer' = [answer EXCEPT ![m] = "waiting"]
    /\ UNCHANGED <<file, durable, nodeState, commit, calm, history>>

\* Any other node answers NOT_LEADER and stores nothing.
Refuse(n, m) ==
    /\ role[n] \in {"FOLLOWER", "CANDIDATE"}
    /\ answer[m] = "unsent"
    /\ answer' = [answer EXCEPT ![m] = "NOT_LEADER"]
    /\ UNCHANGED <<file, ledger, nodeState, commit, network, calm, history>>

Flush(n) ==
    /\ Up(n)
    /\ durable[n] < Len(log[n])
    /\ durable' = [durable EXCEPT ![n] = Len(log[n])]
    /\ UNCHANGED <<file, log, nodeState, commit, network, answer, calm, history>>

Follows(n, m) == role[n] = "FOLLOWER" /\ term[n] = m.term /\ leader[n] = m.source

Matches(n, index, entryTerm) == index <= Len(log[n]) /\ TermAt(log[n], index) = entryTerm

\* The number of a node's entries that count for the commit index.
Kept(n) == durable[n]

\* INCONSISTENT_STATE if the previous entry is missing: the leader steps back by one. Entries that contradict
\* the leader are removed; they are never committed (CommittedStable). SUCCESS is only for durable entries;
\* until then the leader asks again.
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

\* The highest index that a quorum keeps. It is committed only if its entry is of this term (Raft's figure 8).
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
    /\ UNCHANGED <<file, ledger, nodeState, answer, calm, ballots, winners, faults>>

HandleCommit(m) ==
    /\ m.kind = "COMMIT" /\ Follows(m.target, m) /\ Arrives(m)
    /\ Matches(m.target, m.index, m.entryTerm)
    /\ m.index > commit[m.target]
    /\ commit' = [commit EXCEPT ![m.target] = m.index]
    /\ UNCHANGED <<file, ledger, nodeState, network, answer, calm, history>>

\* The leader that accepted the message answers after its commit.
Acknowledge(n, m) ==
    /\ role[n] = "LEADER"
    /\ answer[m] = "waiting"
    /\ \E i \in 1..commit[n] : log[n][i] = [term |-> term[n], message |-> m]
    /\ answer' = [answer EXCEPT ![m] = "SUCCESS"]
    /\ UNCHANGED <<file, ledger, nodeState, commit, network, calm, history>>

\* The client gives up. The entry may be lost, or be committed later.
Fail(m) ==
    /\ answer[m] = "waiting"
    /\ answer' = [answer EXCEPT ![m] = "unknown"]
    /\ UNCHANGED <<file, ledger, nodeState, commit, network, calm, history>>

\* Timers: a candidate repeats its vote requests; a leader repeats its heartbeats, newest entry and commit
\* index.
Repeat(n) ==
    /\ \/ InRound(n) /\ Send(Votes(n))
       \/ /\ role[n] = "LEADER"
          /\ Send(HeartBeats(n) \cup PushToAll(n, log[n], Len(log[n]))
                  \cup (IF commit[n] = 0 THEN {} ELSE Commits(n, commit[n])))
    /\ network' # network
    /\ UNCHANGED <<file, ledger, nodeState, commit, answer, calm, history>>

-----------------------------------------------------------------------------
(* Faults *)

\* The process or its machine crashes. Any part of the non-durable entries may remain; the remaining entries
\* are synced.
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

\* A node that may have led its term is not a candidate in that term again, because it may have lost entries
\* that other nodes have.
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
    /\ UNCHANGED <<file, ledger, nodeState, commit, answer, calm, ballots, winners, committed>>

\* The faults have ended, and a quorum is up.
Calm ==
    /\ ~calm
    /\ IsQuorum({n \in Nodes : Up(n)})
    /\ calm' = TRUE
    /\ UNCHANGED <<file, ledger, nodeState, commit, network, answer, history>>

-----------------------------------------------------------------------------
(* Next and Spec *)

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

\* Messages arrive, timers fire, disks work. A candidate gets its turn although other candidates ask (strong
\* fairness). Each subscript but `vars` is what the action changes in every step; TLC compares `vars` much slower.
ArriveFairness == \A s, t \in Nodes : WF_vars(\E m \in network : m.source = s /\ m.target = t /\ Receive(m))
TermFairness == \A n \in Nodes : WF_term(NextTerm(n))
RequestFairness == \A n \in Nodes : SF_answers(RequestVotes(n))
RoundFairness == \A n \in Nodes : WF_answers(\E heard \in SUBSET Nodes : EndRound(n, heard))
GiveUpFairness == \A n \in Nodes : WF_vars(GiveUp(n))
FlushFairness == \A n \in Nodes : WF_durable(Flush(n))
CommitFairness == \A n \in Nodes : WF_commit(AdvanceCommit(n))
RepeatFairness == \A n \in Nodes : WF_network(Repeat(n))

Fairness ==
    /\ ArriveFairness /\ TermFairness /\ RequestFairness /\ RoundFairness /\ GiveUpFairness
    /\ FlushFairness /\ CommitFairness /\ RepeatFairness

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

\* RAFT-1
ElectionSafety == \A a, b \in winners : a.term = b.term => a.node = b.node

\* RAFT-2. UNCHANGED comes first, here and below, only because it takes TLC less time.
LeaderAppendOnly ==
    [][UNCHANGED log \/ \A n \in Nodes : role[n] = "LEADER" /\ role'[n] = "LEADER" => IsPrefix(log[n], log'[n])]_vars

\* RAFT-3
LogMatching ==
    \A a \in Nodes : \A i \in 1..Len(log[a]) : \A b \in Nodes :
        i <= Len(log[b]) /\ log[a][i].term = log[b][i].term => Prefix(log[a], i) = Prefix(log[b], i)

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

(* Consistency: invariants on states and constraints on steps. They make a wrong step fail where it is
   made. They do not use the definitions of the actions. *)

Most(nodes) == 2 * Cardinality(nodes) > Cardinality(Nodes)

Last(entries) == IF entries = <<>> THEN 0 ELSE entries[Len(entries)].term

Asks(n) == \E p \in Nodes : answers[n][p] # None

Won(n, t) == [term |-> t, node |-> n] \in winners

\* The role of a node and its memory agree.
RolesAgree ==
    \A n \in Nodes :
        /\ role[n] # "CANDIDATE" => known[n] = term[n] /\ ~Asks(n)
        /\ role[n] # "LEADER" => \A p \in Nodes : watermark[n][p] = 0
        /\ role[n] = "LEADER" => leader[n] = n /\ Won(n, term[n])
        /\ role[n] = "FOLLOWER" => leader[n] \notin {n, None} /\ Won(leader[n], term[n])
        /\ role[n] \in {"CANDIDATE", "DOWN"} => leader[n] = None
        /\ role[n] = "DOWN" => commit[n] = 0 /\ durable[n] = Len(log[n])
        /\ Asks(n) => votedFor[n] = n /\ known[n] = term[n] /\ answers[n][n] = "ACCEPT"

\* A vote that counts was given, and the files record it.
VotesAgree ==
    \A n \in Nodes :
        /\ votedFor[n] # None => ballots[n] = [term |-> term[n], candidates |-> {votedFor[n]}]
        /\ \A p \in Nodes :
            answers[n][p] = "ACCEPT" =>
                ballots[p].term > term[n] \/ (ballots[p].term = term[n] /\ n \in ballots[p].candidates)

\* A node's next term is at most one above its own, or at most a term that some node has reached.
TermsOneByOne == \A n \in Nodes : known[n] <= term[n] + 1 \/ \E p \in Nodes : known[n] <= term[p]

\* The entries of each term begin with a no-op, and a message is appended once.
LogsOrdered ==
    \A n \in Nodes :
        \A i \in 1..Len(log[n]) :
            LET before == Last(SubSeq(log[n], 1, i - 1))
                entry == log[n][i]
            IN  /\ before <= entry.term /\ entry.term <= term[n]
                /\ before # entry.term <=> entry.message = NoOp
                /\ \A j \in 1..(i - 1) : entry.message # NoOp => log[n][j].message # entry.message

\* A leader's watermark is true: its followers keep these entries durably.
WatermarkTrue ==
    \A n, p \in Nodes :
        watermark[n][p] > 0 /\ term[p] = term[n] =>
            /\ watermark[n][p] <= durable[p]
            /\ SubSeq(log[p], 1, watermark[n][p]) = SubSeq(log[n], 1, watermark[n][p])

\* A message in flight was true when it was sent, and is not void.
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

\* A client's answer is true.
AnswersTrue ==
    \A m \in Messages :
        /\ answer[m] = "SUCCESS" => \E i \in 1..Len(committed) : committed[i].entry.message = m
        /\ answer[m] \in {"unsent", "NOT_LEADER"} =>
            \A n \in Nodes : \A i \in 1..Len(log[n]) : log[n][i].message # m

\* Terms only rise, and a vote does not change within its term, even across a crash.
VotesKept ==
    [][UNCHANGED file \/ \A n \in Nodes :
        IF term'[n] = term[n] THEN votedFor[n] # None => votedFor'[n] = votedFor[n]
        ELSE term'[n] > term[n] /\ votedFor'[n] = None]_vars

\* A node gives up a term only if it is lost: after a vote for another node, after a round that a quorum
\* answered, or for a later term.
TermsGivenUp ==
    [][UNCHANGED known \/ \A n \in Nodes :
        role[n] = "CANDIDATE" /\ known[n] = term[n] /\ known'[n] > known[n] =>
            \/ votedFor[n] \notin {None, n}
            \/ Most({p \in Nodes : answers[n][p] # None})
            \/ Asks(n) /\ \E p \in Nodes : term[p] = known'[n]
            \/ \E m \in network : m.target = n /\ m.term = known'[n]]_vars

\* A vote goes to a candidate that requested it in this term, with a log that is at least as good.
VotesEarned ==
    [][UNCHANGED votedFor \/ \A n \in Nodes :
        votedFor'[n] \notin {votedFor[n], None} =>
            /\ role[n] # "DOWN" /\ term'[n] = term[n]
            /\ votedFor'[n] = n \/ \E m \in network :
                /\ m.kind = "VOTE" /\ m.source = votedFor'[n] /\ m.target = n /\ m.term = term[n]
                /\ m.endTerm > Last(log[n]) \/ (m.endTerm = Last(log[n]) /\ m.endIndex >= Len(log[n]))]_vars

\* The answer that a candidate receives matches the state of the voter.
AnswersEarned ==
    [][UNCHANGED answers \/ \A n, p \in Nodes :
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

\* A new leader was elected, and it notifies all other nodes.
Elected ==
    [][UNCHANGED role \/ \A n \in Nodes :
        role[n] # "LEADER" /\ role'[n] = "LEADER" =>
            /\ Most({p \in Nodes : answers[n][p] = "ACCEPT"})
            /\ winners' = winners \cup {[term |-> term[n], node |-> n]}
            /\ Len(log'[n]) = Len(log[n]) + 1
            /\ \A p \in Nodes \ {n} :
                (IF term[p] > term[n] THEN {"HEART_BEAT"} ELSE {"HEART_BEAT", "PUSH"}) \subseteq
                    {m.kind : m \in {o \in network' : o.source = n /\ o.target = p /\ o.term = term[n]}}]_vars

\* Only a candidate in its round requests votes. Only a leader sends the other messages.
SentInRole ==
    [][\A m \in network' \ network :
        /\ term'[m.source] = m.term
        /\ m.kind = "VOTE" => answers'[m.source][m.source] = "ACCEPT"
        /\ m.kind # "VOTE" => role'[m.source] = "LEADER"
        /\ m.kind = "COMMIT" => m.index = commit'[m.source]]_vars

\* A leader's log grows at its end. A follower's log grows by pushed entries, which replace only entries that
\* contradict them. A crash removes only non-durable entries. A new entry is not durable yet.
LogsChange ==
    [][UNCHANGED log \/ \A n \in Nodes :
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

\* Durable entries remain, except for those that a follower replaces.
DurableStays ==
    [][UNCHANGED durable \/ \A n \in Nodes : durable'[n] < durable[n] => role'[n] = "FOLLOWER" /\ Len(log'[n]) = durable'[n] + 1]_vars

\* Committed entries remain committed. New entries are committed when a quorum keeps them durably and the last
\* one is of its leader's term.
CommittedByQuorum ==
    [][committed' # committed =>
        LET end == Len(committed')
        IN  /\ end > Len(committed) /\ SubSeq(committed', 1, Len(committed)) = committed
            /\ committed'[end].entry.term = committed'[end].by
            /\ Most({n \in Nodes :
                       /\ durable[n] >= end
                       /\ \A i \in (Len(committed) + 1)..end : log[n][i] = committed'[i].entry})]_vars

\* The status of a message changes in order. The leader that accepted the message answers SUCCESS.
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

\* A node that is down only restarts, and then not in a term that it may have led.
DownIsSilent ==
    [][\A n \in Nodes :
        role[n] = "DOWN" =>
            /\ log'[n] = log[n] /\ term'[n] = term[n] /\ votedFor'[n] = votedFor[n]
            /\ role'[n] # "DOWN" =>
                role'[n] = "CANDIDATE" /\ (IF votedFor[n] = n THEN known'[n] > term[n] ELSE known'[n] = term[n])]_vars

\* A crash affects one node.
OneCrash ==
    [][LET died == {n \in Nodes : role[n] # "DOWN" /\ role'[n] = "DOWN"}
       IN  /\ died # {} => faults' = [faults EXCEPT !.crashes = @ + 1]
           /\ faults'.crashes # faults.crashes => Cardinality(died) = 1]_vars

\* A loss affects one message.
OneLoss ==
    [][faults'.losses # faults.losses =>
        faults'.losses = faults.losses + 1 /\ Cardinality(network \ network') = 1]_vars

\* Without a loss, only void messages disappear.
NothingVanishes ==
    [][faults'.losses = faults.losses =>
        \A m \in network \ network' :
            term'[m.target] > m.term /\ (m.kind \in {"PUSH", "COMMIT"} \/ term'[m.source] > m.term)]_vars

\* In the calm phase there are no faults. A node leaves a leader only for a later term or if the leader no
\* longer leads. Messages of a former leader have no effect.
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

\* In the calm phase, one candidate asks at a time, and the node with the best log asks first.
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

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive. Steps that must happen in the calm phase are a matter of liveness.
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

\* RAFT-7: all nodes that are up follow the leader
LeaderEventually == calm ~> \E n \in Nodes : Led(n)

Converged(n) == Led(n) /\ \A p \in Nodes : Up(p) => log[p] = log[n] /\ commit[p] = Len(log[n])

\* RAFT-8
LogsConverge == calm ~> \E n \in Nodes : Converged(n)

=============================================================================
