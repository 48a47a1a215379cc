-------------------------------- MODULE Lock --------------------------------
(* A lock server: clients ask for a lock, get it one at a time, and give it back. *)
EXTENDS Naturals

CONSTANTS Clients, NoClient

VARIABLES
    holder,   \* the client that has the lock, or NoClient
    waiting   \* the clients that asked for it
vars == <<holder, waiting>>

TypeOK == holder \in Clients \cup {NoClient} /\ waiting \subseteq Clients

Init == holder = NoClient /\ waiting = {}

Request(c) ==
    /\ holder # c
    /\ c \notin waiting
    /\ waiting' = waiting \cup {c}
    /\ UNCHANGED holder

Grant(c) ==
    /\ holder = NoClient
    /\ c \in waiting
    /\ holder' = c
    /\ waiting' = waiting \ {c}

Release(c) ==
    /\ holder = c
    /\ holder' = NoClient
    /\ UNCHANGED waiting

Next == \E c \in Clients : Request(c) \/ Grant(c) \/ Release(c)

Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ \A c \in Clients : SF_vars(Grant(c)) /\ WF_vars(Release(c))
WithoutReleaseFairness == Spec /\ \A c \in Clients : SF_vars(Grant(c))

\* Safety: the holder does not wait, the lock is never taken from its holder, and only given to a client that asked.
HolderDoesNotWait == holder \notin waiting
NotTaken == [][holder # NoClient => holder' \in {holder, NoClient}]_vars
GivenToWaiting == [][\A c \in Clients : holder # c /\ holder' = c => c \in waiting]_vars

\* Liveness: a client that asks gets the lock.
Served == \A c \in Clients : c \in waiting ~> holder = c

\* A probe is an invariant that must be false somewhere: it shows that the situation does happen.
NeverContended == holder = NoClient \/ waiting = {}
=============================================================================
