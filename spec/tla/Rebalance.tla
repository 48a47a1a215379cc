------------------------------- MODULE Rebalance --------------------------------
(***************************************************************************)
(* The members of a group divide the queues of a topic. Each member sends  *)
(* heartbeats to all brokers, asks one of them for the members, and        *)
(* computes its own share. No process assigns the queues, so the shares    *)
(* are a partition only if the members agree.                              *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - Client ids are numbers, which have the order of their texts.         *)
(*  - Topics are independent, so there is one; with one queue it is the    *)
(*    retry topic of the group.                                            *)
(*  - A notification only makes a rebalance happen earlier.                *)
(*  - A heartbeat and its answer are one step, because a lost one is       *)
(*    repeated.                                                            *)
(*  - The end of a member and the closed connection are two steps, also    *)
(*    when the broker notices only the missing heartbeats.                 *)
(*  - Reading: Group models the messages that two owners read during a     *)
(*    rebalance.                                                           *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Members,   \* the client ids of one group, numbers
    Brokers,   \* the brokers of the topic, strings
    Counts,    \* the numbers of queues that the topic may have
    Strategy   \* "average": blocks of queues; "circle": one queue after the other

ASSUME
    /\ Members \subseteq Nat \ {0} /\ Members # {} /\ Brokers # {}
    /\ Counts \subseteq Nat \ {0} /\ Counts # {} /\ Strategy \in {"average", "circle"}

NoBasis == [ids |-> {}, queues |-> 0]

-----------------------------------------------------------------------------
(* State *)

VARIABLE queues  \* the number of queues of the topic
CountOK == queues \in Counts

VARIABLE alive  \* the members that run
AliveOK == alive \subseteq Members

VARIABLE known  \* by broker: the members that it knows, in the order in which they registered
KnownOK == known \in [Brokers -> Seq(Members)]

VARIABLE route  \* by member: the number of queues in its route
RouteOK == route \in [Members -> Counts]

VARIABLE share  \* by member: the queues that it owns
ShareOK == \A m \in Members : share[m] \subseteq 1..(CHOOSE n \in Counts : \A k \in Counts : k <= n)

VARIABLE basis  \* history, by member: the members and the number of queues that its share was computed from
BasisOK == basis \in [Members -> [ids : SUBSET Members, queues : Counts \cup {0}]]

vars == <<queues, alive, known, route, share, basis>>

TypeOK == CountOK /\ AliveOK /\ KnownOK /\ RouteOK /\ ShareOK /\ BasisOK

Init ==
    /\ queues \in Counts
    /\ alive = {}
    /\ known = [b \in Brokers |-> <<>>]
    /\ route = [m \in Members |-> queues]
    /\ share = [m \in Members |-> {}]
    /\ basis = [m \in Members |-> NoBasis]

-----------------------------------------------------------------------------
(* Shares *)

Knows(b, m) == \E i \in 1..Len(known[b]) : known[b][i] = m

Ids(b) == {known[b][i] : i \in 1..Len(known[b])}

\* The place of a member among the sorted ids, from 0.
Position(b, m) == Cardinality({n \in Ids(b) : n < m})

Min(a, b) == IF a < b THEN a ELSE b

\* The share of the member at a place among `size` members. The first ones have one queue more.
Average(place, size, n) ==
    LET first == place * (n \div size) + Min(place, n % size)
        last == (place + 1) * (n \div size) + Min(place + 1, n % size)
    IN first + 1..last

Circle(place, size, n) == {q \in 1..n : (q - 1) % size = place}

\* A member that the broker does not list has no queue.
Share(b, m) ==
    LET size == Len(known[b])
    IN IF ~Knows(b, m) THEN {}
       ELSE IF Strategy = "average" THEN Average(Position(b, m), size, route[m])
       ELSE Circle(Position(b, m), size, route[m])

-----------------------------------------------------------------------------
(* Members *)

Start(m) ==
    /\ m \notin alive
    /\ alive' = alive \cup {m}
    /\ route' = [route EXCEPT ![m] = queues]
    /\ UNCHANGED <<queues, known, share, basis>>

\* The process of a member ends. Its brokers do not know it yet.
Die(m) ==
    /\ m \in alive
    /\ alive' = alive \ {m}
    /\ share' = [share EXCEPT ![m] = {}]
    /\ basis' = [basis EXCEPT ![m] = NoBasis]
    /\ UNCHANGED <<queues, known, route>>

Heartbeat(m, b) ==
    /\ m \in alive
    /\ ~Knows(b, m)
    /\ known' = [known EXCEPT ![b] = Append(@, m)]
    /\ UNCHANGED <<queues, alive, route, share, basis>>

\* The member receives the present route of the topic.
Poll(m) ==
    /\ m \in alive
    /\ route[m] # queues
    /\ route' = [route EXCEPT ![m] = queues]
    /\ UNCHANGED <<queues, alive, known, share, basis>>

Basis(b, m) == [ids |-> Ids(b), queues |-> route[m]]

\* The member asks a broker that has its heartbeat for the members of the group.
Rebalance(m, b) ==
    /\ m \in alive
    /\ basis[m] # Basis(b, m)
    /\ share' = [share EXCEPT ![m] = Share(b, m)]
    /\ basis' = [basis EXCEPT ![m] = Basis(b, m)]
    /\ UNCHANGED <<queues, alive, known, route>>

-----------------------------------------------------------------------------
(* Brokers and operators *)

\* The connection of a member that ended closes, or its heartbeats are missing for too long.
Forget(b, m) ==
    /\ m \notin alive
    /\ Knows(b, m)
    /\ known' = [known EXCEPT ![b] = SelectSeq(@, LAMBDA n : n # m)]
    /\ UNCHANGED <<queues, alive, route, share, basis>>

\* The table of members is only in memory.
Restart(b) ==
    /\ known[b] # <<>>
    /\ known' = [known EXCEPT ![b] = <<>>]
    /\ UNCHANGED <<queues, alive, route, share, basis>>

\* An operator changes the number of queues.
Resize(n) ==
    /\ n # queues
    /\ queues' = n
    /\ UNCHANGED <<alive, known, route, share, basis>>

-----------------------------------------------------------------------------
(* Next and Spec *)

Changes == (\E m \in Members : Start(m) \/ Die(m)) \/ (\E b \in Brokers : Restart(b)) \/ (\E n \in Counts : Resize(n))

Next ==
    \/ Changes
    \/ \E m \in Members : Poll(m) \/ \E b \in Brokers : Heartbeat(m, b) \/ Rebalance(m, b) \/ Forget(b, m)

\* Members and brokers change finitely often. Members that run send heartbeats, poll and rebalance with each broker.
\* Brokers forget members that ended.
\* Each subscript is what the action changes in every step; TLC compares `vars` slower.
Heartbeats == WF_known(\E m \in Members, b \in Brokers : Heartbeat(m, b))
Polls == WF_route(\E m \in Members : Poll(m))
Rebalances == \A m \in Members, b \in Brokers : WF_basis(Rebalance(m, b))
Forgets == WF_known(\E m \in Members, b \in Brokers : Forget(b, m))
ChangesEnd == <>[][~Changes]_vars

Fairness == Heartbeats /\ Polls /\ Rebalances /\ Forgets /\ ChangesEnd

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

Owners(q) == {m \in alive : q \in share[m]}

\* The members that run have computed their shares from themselves and from the present queues.
Settled == alive # {} /\ \A m \in alive : basis[m] = [ids |-> alive, queues |-> queues]

\* DELIV-6: members that agree share no queue; when all agree, each queue has one owner
OneOwner ==
    /\ \A m, n \in alive : m # n /\ basis[m] = basis[n] => share[m] \cap share[n] = {}
    /\ Settled => \A q \in 1..queues : Cardinality(Owners(q)) = 1

\* The shares of the members differ by one queue at most. These are relations, not promises to users.
Coherent ==
    /\ \A m \in Members \ alive : share[m] = {} /\ basis[m] = NoBasis
    /\ \A m \in alive : share[m] \subseteq 1..basis[m].queues
    /\ \A m \in alive : share[m] # {} => m \in basis[m].ids
    /\ \A b \in Brokers : \A i, j \in 1..Len(known[b]) : i # j => known[b][i] # known[b][j]
    /\ Settled => \A m, n \in alive :
        /\ Cardinality(share[m]) <= Cardinality(share[n]) + 1
        /\ m < n => Cardinality(share[m]) >= Cardinality(share[n])
        /\ m < n /\ share[n] # {} => \E q \in share[m] : \A r \in share[n] : q < r

(* Consistency: constraints on steps. They make a wrong step fail where it is made. *)

\* A member that starts or ends changes nothing else. It starts with the present route.
MembersChange ==
    [][alive' # alive =>
        \E m \in Members :
            /\ alive' \in {alive \cup {m}, alive \ {m}}
            /\ m \in alive' => route'[m] = queues /\ UNCHANGED <<share, basis>>
            /\ m \in alive => route' = route
            /\ \A n \in Members \ {m} : route'[n] = route[n] /\ share'[n] = share[n] /\ basis'[n] = basis[n]
            /\ UNCHANGED <<queues, known>>]_vars

\* A broker adds one member that runs at the end, forgets one that ended, or loses its table.
KnownFollows ==
    [][known' # known =>
        /\ \E b \in Brokers :
            /\ known' = [known EXCEPT ![b] = known'[b]]
            /\ \/ known'[b] = <<>>
               \/ \E m \in alive : known'[b] = Append(known[b], m)
               \/ \E m \in Members \ alive : known'[b] = SelectSeq(known[b], LAMBDA n : n # m)
        /\ UNCHANGED <<queues, alive, route, share, basis>>]_vars

\* Only a rebalance changes the share of a member that runs. It uses the answer of one broker.
SharesFollow ==
    [][\A m \in alive \cap alive' :
        share'[m] # share[m] \/ basis'[m] # basis[m] =>
            /\ basis'[m] # basis[m]
            /\ \E b \in Brokers : basis'[m] = [ids |-> {known[b][i] : i \in 1..Len(known[b])}, queues |-> route[m]]
            /\ \A n \in Members \ {m} : share'[n] = share[n] /\ basis'[n] = basis[n]
            /\ UNCHANGED <<queues, alive, known, route>>]_vars

\* A route changes to the present number of queues.
RoutesFollow == [][\A m \in Members : route'[m] # route[m] => route'[m] = queues /\ m \in alive' /\ UNCHANGED <<queues, known, share, basis>>]_vars

CountChanges == [][queues' # queues => UNCHANGED <<alive, known, route, share, basis>>]_vars

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive.
NeverStuck ==
    /\ \A m \in Members :
        /\ m \notin alive => ENABLED (Next /\ alive' = alive \cup {m})
        /\ m \in alive =>
            /\ ENABLED (Next /\ alive' = alive \ {m})
            /\ route[m] # queues => ENABLED (Next /\ route'[m] = queues)
            /\ \A b \in Brokers :
                IF \E i \in 1..Len(known[b]) : known[b][i] = m
                THEN basis[m] # [ids |-> {known[b][i] : i \in 1..Len(known[b])}, queues |-> route[m]]
                     => ENABLED (Next /\ basis'[m] = [ids |-> {known[b][i] : i \in 1..Len(known[b])}, queues |-> route[m]])
                ELSE ENABLED (Next /\ known'[b] = Append(known[b], m))
        /\ \A b \in Brokers :
            m \notin alive /\ (\E i \in 1..Len(known[b]) : known[b][i] = m)
            => ENABLED (Next /\ Len(known'[b]) = Len(known[b]) - 1 /\ \A i \in 1..Len(known'[b]) : known'[b][i] # m)
    /\ \A b \in Brokers : known[b] # <<>> => ENABLED (Next /\ known'[b] = <<>> /\ alive' = alive)
    /\ \A n \in Counts \ {queues} : ENABLED (Next /\ queues' = n)

-----------------------------------------------------------------------------
(* Liveness *)

\* Once members and brokers no longer change, each queue has one owner, and keeps it.
QueuesOwned == <>[](alive # {} => \A q \in 1..queues : Cardinality(Owners(q)) = 1)

=================================================================================
