---------------------------- MODULE LeaderLease ----------------------------
(***************************************************************************)
(* Which member of a DLedger group may answer clients, also while a leader *)
(* transfers its leadership. Election says who leads a term. A leader of   *)
(* an older term does not know that. So it answers clients only while a    *)
(* quorum waits for it (its lease), and not while another member takes     *)
(* over at its request.                                                    *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - Elections: a round of votes is one step, and a term has one leader   *)
(*    (RAFT-1).                                                            *)
(*  - Logs: Election says which candidate has all committed entries; here  *)
(*    each candidate may have them.                                        *)
(*  - Time: a leader counts an answer for as long as the follower that     *)
(*    gave it waits for the next heartbeat, because both count the same    *)
(*    time and the leader begins earlier.                                  *)
(*  - Messages: a heartbeat with its answer is one step, and so is a       *)
(*    refusal of a transfer; a lost one is a step that never happens.      *)
(*  - Restarts: a member that restarts forgets that it waits, so here no   *)
(*    member restarts.                                                     *)
(*  - Clients: a leader that may answer a client does so at any time; the  *)
(*    entries that clients append are one entry for each term.             *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANT Nodes \* the members of the group, strings

None == "none"

ASSUME Nodes # {} /\ None \notin Nodes

Peers(n) == Nodes \ {n}

IsQuorum(nodes) == 2 * Cardinality(nodes) > Cardinality(Nodes)

-----------------------------------------------------------------------------
(* State *)

VARIABLE role      \* the role of each node; a voter voted for another node and knows no leader
RoleOK == role \in [Nodes -> {"CANDIDATE", "VOTER", "FOLLOWER", "LEADER"}]

VARIABLE term      \* the current term of each node
TermOK == term \in [Nodes -> Nat]

VARIABLE leader    \* the leader that a follower waits for; the leader that asked a candidate to take over
LeaderOK == leader \in [Nodes -> Nodes \cup {None}]

VARIABLE answered  \* memory of a leader: the followers whose last answer still counts
AnsweredOK == answered \in [Nodes -> SUBSET Nodes]

VARIABLE successor \* memory of a leader: the node that it asked to take over, until the transfer ends
SuccessorOK == successor \in [Nodes -> Nodes \cup {None}]

VARIABLE network   \* the requests to take over that have no answer yet, and whether the target has stood because of it
NetworkOK == network \subseteq [source : Nodes, target : Nodes, term : Nat, taken : BOOLEAN]

VARIABLE commits   \* history: the terms whose leader has committed an entry
CommitsOK == commits \subseteq Nat

memory == <<answered, successor>>
vars == <<role, term, leader, memory, network, commits>>

TypeOK == RoleOK /\ TermOK /\ LeaderOK /\ AnsweredOK /\ SuccessorOK /\ NetworkOK /\ CommitsOK

Init ==
    /\ role = [n \in Nodes |-> "CANDIDATE"]
    /\ term = [n \in Nodes |-> 0]
    /\ leader = [n \in Nodes |-> None]
    /\ answered = [n \in Nodes |-> {}]
    /\ successor = [n \in Nodes |-> None]
    /\ network = {}
    /\ commits = {}

-----------------------------------------------------------------------------
(* Elections *)

Leads(n, t) == role[n] = "LEADER" /\ term[n] = t

Follows(p, n, t) == role[p] = "FOLLOWER" /\ term[p] = t /\ leader[p] = n

\* A node enters a new term without a leader, or with the leader that asked it to take over.
Stand(n, asker) ==
    /\ role' = [role EXCEPT ![n] = "CANDIDATE"]
    /\ term' = [term EXCEPT ![n] = @ + 1]
    /\ leader' = [leader EXCEPT ![n] = asker]

Forget(nodes) ==
    /\ answered' = [p \in Nodes |-> IF p \in nodes THEN {} ELSE answered[p]]
    /\ successor' = [p \in Nodes |-> IF p \in nodes THEN None ELSE successor[p]]

\* A follower received no heartbeat for too long. By then its last answer counts no more.
GiveUp(n) ==
    /\ role[n] = "FOLLOWER"
    /\ Stand(n, None)
    /\ answered' = [answered EXCEPT ![leader[n]] = @ \ {n}]
    /\ UNCHANGED <<successor, network, commits>>

\* A leader that receives no answers of a quorum, or learns of a later term.
StepDown(n) ==
    /\ role[n] = "LEADER"
    /\ Stand(n, None)
    /\ Forget({n})
    /\ UNCHANGED <<network, commits>>

\* A candidate whose round failed, or a voter that receives no heartbeat.
StandAgain(n) ==
    /\ role[n] \in {"CANDIDATE", "VOTER"}
    /\ Stand(n, None)
    /\ UNCHANGED <<memory, network, commits>>

\* A follower waits for its leader: it answers no candidate of a later term, unless the leader asked that one to
\* take over, or is that candidate, because it has stepped down then.
MayVoteFor(p, n) == term[p] < term[n] /\ (role[p] = "FOLLOWER" => leader[p] \in {n, leader[n]})

\* A vote confirms nothing: the voter waits for no leader yet.
Elect(n, voters) ==
    /\ role[n] = "CANDIDATE"
    /\ voters \subseteq Peers(n) /\ IsQuorum(voters \cup {n})
    /\ \A p \in voters : MayVoteFor(p, n)
    /\ role' = [p \in Nodes |-> IF p = n THEN "LEADER" ELSE IF p \in voters THEN "VOTER" ELSE role[p]]
    /\ term' = [p \in Nodes |-> IF p \in voters THEN term[n] ELSE term[p]]
    /\ leader' = [p \in Nodes |-> IF p \in voters \cup {n} THEN None ELSE leader[p]]
    /\ Forget(voters)
    /\ UNCHANGED <<network, commits>>

\* A heartbeat and its answer. A node in an older term enters the leader's.
HeartBeat(n, p) ==
    /\ role[n] = "LEADER" /\ p # n
    /\ term[p] <= term[n]
    /\ role' = [role EXCEPT ![p] = "FOLLOWER"]
    /\ term' = [term EXCEPT ![p] = term[n]]
    /\ leader' = [leader EXCEPT ![p] = n]
    /\ answered' = [answered EXCEPT ![p] = {}, ![n] = @ \cup {p}]
    /\ successor' = [successor EXCEPT ![p] = None]
    /\ <<role, term, leader, memory>>' # <<role, term, leader, memory>>
    /\ UNCHANGED <<network, commits>>

\* A quorum keeps an entry of the leader's term, the first of which is its no-op.
Commit(n) ==
    /\ role[n] = "LEADER"
    /\ IsQuorum({n} \cup {p \in Nodes : Follows(p, n, term[n])})
    /\ term[n] \notin commits
    /\ commits' = commits \cup {term[n]}
    /\ UNCHANGED <<role, term, leader, memory, network>>

-----------------------------------------------------------------------------
(* Transfers *)

\* From here on the leader serves no client, because its successor does not wait until its lease has ended.
Transfer(n, p) ==
    /\ role[n] = "LEADER" /\ p # n
    /\ successor[n] = None
    /\ successor' = [successor EXCEPT ![n] = p]
    /\ network' = network \cup {[source |-> n, target |-> p, term |-> term[n], taken |-> FALSE]}
    /\ UNCHANGED <<role, term, leader, answered, commits>>

\* The transfer ends without a new leader.
GoOn(n, t) == successor' = IF Leads(n, t) THEN [successor EXCEPT ![n] = None] ELSE successor

\* The request was not sent, and the leader knows it.
NotSent(m) ==
    /\ m \in network /\ ~m.taken
    /\ network' = network \ {m}
    /\ GoOn(m.source, m.term)
    /\ UNCHANGED <<role, term, leader, answered, commits>>

\* The node refuses, or does not have all entries in time. Its answer shows that it is in no later term.
Refuse(m) ==
    /\ m \in network /\ ~m.taken
    /\ term[m.target] <= m.term
    /\ network' = network \ {m}
    /\ GoOn(m.source, m.term)
    /\ UNCHANGED <<role, term, leader, answered, commits>>

\* The request or its answer is lost. An answer of a later term changes nothing either.
Lose(m) ==
    /\ m \in network
    /\ network' = network \ {m}
    /\ UNCHANGED <<role, term, leader, memory, commits>>

\* The follower has all entries. It is a candidate at once, although it hears its leader.
TakeOver(m) ==
    /\ m \in network
    /\ Follows(m.target, m.source, m.term)
    /\ network' = (network \ {m}) \cup {[m EXCEPT !.taken = TRUE]}
    /\ Stand(m.target, m.source)
    /\ UNCHANGED <<memory, commits>>

\* There is no answer in time. The leader does not wait until its lease has ended.
HandOver(n) ==
    /\ successor[n] # None
    /\ Stand(n, None)
    /\ Forget({n})
    /\ UNCHANGED <<network, commits>>

-----------------------------------------------------------------------------
(* Clients *)

\* The leader may answer a client: a quorum waits for it, it knows what is committed, and no node takes over.
Serves(n) ==
    /\ role[n] = "LEADER"
    /\ IsQuorum(answered[n] \cup {n})
    /\ term[n] \in commits
    /\ successor[n] = None

-----------------------------------------------------------------------------
(* Next and Spec *)

Next ==
    \/ \E n \in Nodes : GiveUp(n) \/ StepDown(n) \/ StandAgain(n) \/ Commit(n) \/ HandOver(n)
    \/ \E n \in Nodes, voters \in SUBSET Nodes : Elect(n, voters)
    \/ \E n, p \in Nodes : HeartBeat(n, p) \/ Transfer(n, p)
    \/ \E m \in network : NotSent(m) \/ Refuse(m) \/ Lose(m) \/ TakeOver(m)

\* A leader waits for an answer for a limited time.
Fairness == \A n \in Nodes : WF_vars(HandOver(n))

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

\* RAFT-9: a leader that may answer a client knows all committed entries: it has committed one of its term, and no later
\* leader has
ReadsCurrent ==
    \A n \in Nodes : Serves(n) => \A t \in commits : t <= term[n] /\ term[n] \in commits

(* Consistency: invariants on states and constraints on steps. They make a wrong step fail where it is made. *)

\* The role of a node and its memory agree. A term has one leader.
RolesAgree ==
    \A n \in Nodes :
        /\ role[n] # "LEADER" => answered[n] = {} /\ successor[n] = None
        /\ role[n] = "LEADER" => leader[n] = None /\ n \notin answered[n] \cup {successor[n]}
        /\ role[n] = "FOLLOWER" => leader[n] \notin {n, None}
        /\ \A p \in Peers(n) : role[n] = "LEADER" /\ role[p] = "LEADER" => term[n] # term[p]

\* A follower whose answer counts waits for the leader, unless the leader asked a node to take over.
AnswersHold ==
    \A n, p \in Nodes :
        p \in answered[n] /\ successor[n] = None => role[p] = "FOLLOWER" /\ leader[p] = n /\ term[p] = term[n]

\* A request is that of the current transfer of its leader, or its leader is in a later term.
RequestsTrue ==
    \A m \in network :
        /\ m.source # m.target
        /\ m.taken => term[m.target] > m.term
        /\ term[m.source] > m.term \/ (role[m.source] = "LEADER" /\ term[m.source] = m.term /\ successor[m.source] = m.target)

TermsRise == [][\A n \in Nodes : term'[n] >= term[n] /\ (term'[n] = term[n] /\ role[n] = "LEADER" => role'[n] = "LEADER")]_vars

\* A leader serves again only after it knows that its request was not accepted: it was not sent, or was refused in no
\* later term.
TransferEnds ==
    [][\A n \in Nodes :
        successor[n] # None /\ role'[n] = "LEADER" /\ successor'[n] # successor[n] =>
            /\ successor'[n] = None /\ term'[n] = term[n]
            /\ network' = network \ {[source |-> n, target |-> successor[n], term |-> term[n], taken |-> FALSE]}
            /\ network' # network]_vars

\* A follower leaves its leader for a later term. Then its answers count no more, or the leader asked a node to take over.
FollowersWait ==
    [][\A p \in Nodes :
        role[p] = "FOLLOWER" /\ (role'[p] # "FOLLOWER" \/ leader'[p] # leader[p]) =>
            /\ term'[p] > term[p]
            /\ p \notin answered'[leader[p]] \/ successor[leader[p]] # None]_vars

\* An entry is committed by a leader that a quorum follows, and remains committed.
CommittedByQuorum ==
    [][commits' # commits =>
        \E n \in Nodes :
            /\ role[n] = "LEADER" /\ commits' = commits \cup {term[n]}
            /\ 2 * Cardinality({p \in Peers(n) : leader[p] = n /\ term[p] = term[n]}) >= Cardinality(Nodes) - 1]_vars

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive.
NeverStuck ==
    /\ \A n \in Nodes :
        /\ ENABLED (Next /\ term'[n] = term[n] + 1 /\ role'[n] = "CANDIDATE")
        /\ role[n] = "CANDIDATE"
           /\ (\A p \in Peers(n) : term[p] < term[n] /\ (role[p] = "FOLLOWER" => leader[p] = leader[n] \/ leader[p] = n)) =>
            ENABLED (Next /\ role'[n] = "LEADER")
        /\ role[n] = "LEADER" =>
            /\ \A p \in Peers(n) : term[p] <= term[n] /\ p \notin answered[n] => ENABLED (Next /\ p \in answered'[n])
            /\ term[n] \notin commits /\ IsQuorum(answered[n] \cup {n}) /\ successor[n] = None =>
                ENABLED (Next /\ term[n] \in commits')
            /\ successor[n] = None => \A p \in Peers(n) : ENABLED (Next /\ successor'[n] = p)
    /\ \A m \in network :
        /\ ENABLED (Next /\ network' = network \ {m} /\ successor' = successor /\ term' = term)
        /\ role[m.source] = "LEADER" /\ term[m.source] = m.term /\ ~m.taken =>
            ENABLED (Next /\ successor'[m.source] = None /\ role'[m.source] = "LEADER")
        /\ role[m.target] = "FOLLOWER" /\ leader[m.target] = m.source /\ term[m.target] = m.term =>
            ENABLED (Next /\ term'[m.target] = m.term + 1 /\ leader'[m.target] = m.source)

-----------------------------------------------------------------------------
(* Liveness *)

\* Clients do not wait for the end of a transfer for ever.
TransferEventuallyEnds == \A n \in Nodes : successor[n] # None ~> successor[n] = None

=============================================================================
