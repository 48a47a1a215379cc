----------------------------- MODULE OrderLock ------------------------------
(***************************************************************************)
(* Orderly consumption: a member of a group consumes a queue only while it *)
(* holds the queue's lock at the broker. The broker forgets a lock that is *)
(* not renewed; the member trusts its lock for a shorter time. A module    *)
(* beside Group, because of all that a group does it needs only who thinks *)
(* that the queue is his.                                                  *)
(*                                                                         *)
(* Abstracted away, one sentence each:                                     *)
(*  - Queues: one is shown, since locks of different queues never meet.    *)
(*  - Offsets and messages: Group has them; a call of the listener begins  *)
(*    and ends.                                                            *)
(*  - Rebalancing: a member may gain or drop the queue at any time, and    *)
(*    several may think that it is theirs.                                 *)
(*  - Time: ticks of ten seconds; a request is answered, or times out,     *)
(*    within one, and what is due is done before the next.                 *)
(*  - Clocks: all of them tick alike; one that stands still is a stall.    *)
(*  - Unlocking is a one-way request that arrives at once or never.        *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Members,     \* of one group
    LockLease,   \* so long the broker keeps a lock that is not renewed, in ticks: 6
    LockTrust,   \* so long a member trusts a lock that it was granted, in ticks: 3
    RenewEvery   \* so often it is renewed, in ticks: 2

ASSUME /\ Members # {} /\ LockLease \in Nat /\ LockTrust \in Nat /\ RenewEvery \in Nat
       /\ 0 < RenewEvery /\ RenewEvery <= LockTrust /\ LockTrust < LockLease

Nobody == "nobody"

Capped(n, most) == IF n < most THEN n + 1 ELSE most

-----------------------------------------------------------------------------
(* State *)

VARIABLE assigned \* the members to whom their last rebalance gave the queue
AssignedOK == assigned \subseteq Members

VARIABLE leaving  \* the members who dropped it and have not unlocked it yet
LeavingOK == leaving \subseteq Members

VARIABLE holder   \* the broker's lock table: whose the queue is
HolderOK == holder \in Members \cup {Nobody}

VARIABLE held     \* and for how long, since it was last granted; from LockLease on anybody may take it over
HeldOK == held \in 0..LockLease

VARIABLE asking   \* the lock request of a member: none, under way, or its answer
AskingOK == asking \in [Members -> {"no", "asked", "granted", "refused"}]

VARIABLE asked    \* ticks since it last asked
AskedOK == asked \in [Members -> 0..RenewEvery]

VARIABLE trust    \* ticks since it last heard that the lock was granted; from LockTrust on it does not trust it
TrustOK == trust \in [Members -> 0..LockTrust]

VARIABLE calls    \* the members whose listener is at work on a message of the queue
CallsOK == calls \subseteq Members

VARIABLE robbed   \* history: the members whose lock was lost by a fault, until they are granted it again
RobbedOK == robbed \subseteq Members

vars == <<assigned, leaving, holder, held, asking, asked, trust, calls, robbed>>

TypeOK == AssignedOK /\ LeavingOK /\ HolderOK /\ HeldOK /\ AskingOK /\ AskedOK /\ TrustOK /\ CallsOK /\ RobbedOK

Init ==
    /\ assigned = {}
    /\ leaving = {}
    /\ holder = Nobody
    /\ held = 0
    /\ asking = [m \in Members |-> "no"]
    /\ asked = [m \in Members |-> RenewEvery]
    /\ trust = [m \in Members |-> LockTrust]
    /\ calls = {}
    /\ robbed = {}

Trusts(m) == trust[m] < LockTrust

-----------------------------------------------------------------------------
(* Rebalancing *)

\* Who still has to unlock the queue does not take it again before it has.
Gain(m) ==
    /\ m \notin assigned
    /\ m \notin leaving
    /\ assigned' = assigned \cup {m}
    /\ UNCHANGED <<leaving, holder, held, asking, asked, trust, calls, robbed>>

Drop(m) ==
    /\ m \in assigned
    /\ assigned' = assigned \ {m}
    /\ leaving' = leaving \cup {m}
    /\ UNCHANGED <<holder, held, asking, asked, trust, calls, robbed>>

-----------------------------------------------------------------------------
(* The lock *)

\* Asked for at first, and renewed.
Ask(m) ==
    /\ m \in assigned
    /\ asking[m] = "no"
    /\ asked[m] = RenewEvery
    /\ asking' = [asking EXCEPT ![m] = "asked"]
    /\ asked' = [asked EXCEPT ![m] = 0]
    /\ UNCHANGED <<assigned, leaving, holder, held, trust, calls, robbed>>

Free(m) == holder \in {m, Nobody} \/ held = LockLease

\* The broker answers.
LockQueue(m) ==
    /\ asking[m] = "asked"
    /\ asking' = [asking EXCEPT ![m] = IF Free(m) THEN "granted" ELSE "refused"]
    /\ holder' = IF Free(m) THEN m ELSE holder
    /\ held' = IF Free(m) THEN 0 ELSE held
    /\ robbed' = IF Free(m) THEN robbed \ {m} ELSE robbed
    /\ UNCHANGED <<assigned, leaving, asked, trust, calls>>

Hear(m) ==
    /\ asking[m] \in {"granted", "refused"}
    /\ trust' = [trust EXCEPT ![m] = IF asking[m] = "granted" THEN 0 ELSE LockTrust]
    /\ asking' = [asking EXCEPT ![m] = "no"]
    /\ UNCHANGED <<assigned, leaving, holder, held, asked, calls, robbed>>

\* The request or its answer is lost, and times out.
Lose(m) ==
    /\ asking[m] # "no"
    /\ asking' = [asking EXCEPT ![m] = "no"]
    /\ UNCHANGED <<assigned, leaving, holder, held, asked, trust, calls, robbed>>

\* Only once its listener has returned, and nothing that it asked is under way.
MayUnlock(m) == m \in leaving /\ m \notin calls /\ asking[m] = "no"

Left(m) ==
    /\ leaving' = leaving \ {m}
    /\ trust' = [trust EXCEPT ![m] = LockTrust]
    /\ UNCHANGED <<assigned, asking, asked, calls, robbed>>

UnlockQueue(m) ==
    /\ MayUnlock(m)
    /\ holder' = IF holder = m THEN Nobody ELSE holder
    /\ held' = IF holder = m THEN 0 ELSE held
    /\ Left(m)

LoseUnlock(m) ==
    /\ MayUnlock(m)
    /\ UNCHANGED <<holder, held>>
    /\ Left(m)

-----------------------------------------------------------------------------
(* Consuming *)

Begin(m) ==
    /\ m \in assigned
    /\ Trusts(m)
    /\ m \notin calls
    /\ calls' = calls \cup {m}
    /\ UNCHANGED <<assigned, leaving, holder, held, asking, asked, trust, robbed>>

End(m) ==
    /\ m \in calls
    /\ calls' = calls \ {m}
    /\ UNCHANGED <<assigned, leaving, holder, held, asking, asked, trust, robbed>>

-----------------------------------------------------------------------------
(* Time and faults *)

\* A listener returns before the lock's lease is over; one that does not is stalled.
Tick ==
    /\ \A m \in Members : asking[m] = "no"
    /\ \A m \in assigned : asked[m] < RenewEvery
    /\ holder \in calls \ robbed => held + 1 < LockLease
    /\ held' = IF holder = Nobody THEN 0 ELSE Capped(held, LockLease)
    /\ asked' = [m \in Members |-> Capped(asked[m], RenewEvery)]
    /\ trust' = [m \in Members |-> Capped(trust[m], LockTrust)]
    /\ <<held, asked, trust>>' # <<held, asked, trust>>
    /\ UNCHANGED <<assigned, leaving, holder, asking, calls, robbed>>

\* The lock table is in memory only: a broker that starts, or takes over, has none.
Restart ==
    /\ holder # Nobody
    /\ holder' = Nobody
    /\ held' = 0
    /\ asking' = [m \in Members |-> "no"]
    /\ robbed' = robbed \cup {m \in Members : Trusts(m) \/ m \in calls}
    /\ UNCHANGED <<assigned, leaving, asked, trust, calls>>

\* A listener, or the whole process, stands still while the time goes on.
Stall(m) ==
    /\ m \in calls
    /\ m \notin robbed
    /\ robbed' = robbed \cup {m}
    /\ UNCHANGED <<assigned, leaving, holder, held, asking, asked, trust, calls>>

-----------------------------------------------------------------------------
(* The whole *)

Member(m) ==
    \/ Gain(m) \/ Drop(m) \/ Ask(m) \/ LockQueue(m) \/ Hear(m) \/ Lose(m) \/ UnlockQueue(m) \/ LoseUnlock(m)
    \/ Begin(m) \/ End(m) \/ Stall(m)

Next == (\E m \in Members : Member(m)) \/ Tick \/ Restart

\* What is due is done, listeners return, and not every request is lost. A lock that nobody gives back ends with its
\* lease, so that unlocking needs no fairness.
TicksOn == WF_vars(Tick)
Asks == \A m \in Members : WF_vars(Ask(m))
Answers == \A m \in Members : SF_vars(LockQueue(m))
Hears == \A m \in Members : SF_vars(Hear(m))
Begins == \A m \in Members : SF_vars(Begin(m))
Ends == \A m \in Members : WF_vars(End(m))

Fairness == TicksOn /\ Asks /\ Answers /\ Hears /\ Begins /\ Ends

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. Names are those of spec/invariants.toml. *)

\* DELIV-13: orderly consumption never overlaps, but where a fault has taken a lock from one of the two
NeverOverlaps == \A m, n \in calls \ robbed : m = n

\* Not a promise to anybody, but what the variables mean to one another.
Coherent ==
    /\ holder = Nobody => held = 0
    /\ assigned \cap leaving = {}
    /\ \A m \in Members :
        /\ Trusts(m) /\ m \notin robbed => holder = m /\ held <= trust[m]
        /\ m \in calls \ robbed => holder = m /\ held < LockLease
        /\ asking[m] = "granted" => holder = m /\ held = 0
        /\ m \in calls \/ Trusts(m) => m \in assigned \cup leaving
        /\ asking[m] # "no" => m \in assigned \cup leaving

(* Consistency: what a step may do, so that a wrong step shows where it is made. *)

\* The broker takes a lock from its holder when the lease is over, and otherwise only if it is told, or has forgotten.
TakenOver ==
    [][holder' # holder /\ holder # Nobody =>
        \/ held = LockLease /\ \E m \in Members : asking[m] = "asked" /\ asking'[m] = "granted" /\ holder' = m
        \/ holder' = Nobody /\ holder \in leaving /\ holder \notin leaving' /\ holder \notin calls
        \/ holder' = Nobody /\ \A m \in Members : asking'[m] = "no" /\ (m \in calls \/ Trusts(m) => m \in robbed')]_vars

\* Whoever has the lock, or nobody does, is granted it; and only what was asked is granted.
GrantedRightly ==
    [][\A m \in Members : asking'[m] # asking[m] =>
        /\ asking'[m] = "granted" =>
            /\ asking[m] = "asked"
            /\ holder \in {m, Nobody} \/ held = LockLease
            /\ holder' = m /\ held' = 0
        /\ asking'[m] = "refused" =>
            /\ asking[m] = "asked"
            /\ holder \notin {m, Nobody} /\ held < LockLease
            /\ UNCHANGED <<holder, held>>
        /\ asking'[m] = "asked" => m \in assigned /\ asking[m] = "no" /\ asked[m] = RenewEvery /\ asked'[m] = 0]_vars

\* Trust comes from a grant, and goes with time, a refusal or the queue.
TrustsRightly ==
    [][\A m \in Members :
        /\ trust'[m] < trust[m] => asking[m] = "granted" /\ asking'[m] = "no" /\ trust'[m] = 0
        /\ trust'[m] > trust[m] =>
            \/ trust'[m] = trust[m] + 1 /\ \A n \in Members : asking[n] = "no"
            \/ asking[m] = "refused" /\ trust'[m] = LockTrust
            \/ m \in leaving /\ m \notin leaving' /\ trust'[m] = LockTrust]_vars

\* A call begins with a lock that is trusted, and one call begins or ends at a time.
CallsRightly ==
    [][calls' # calls =>
        \/ \E m \in assigned : Trusts(m) /\ m \notin calls /\ calls' = calls \cup {m}
        \/ \E m \in calls : calls' = calls \ {m}]_vars

\* The queue is taken by those who have nothing to give back, and given back after it was dropped.
GivenBack ==
    [][/\ \A m \in assigned' \ assigned : m \notin leaving
       /\ \A m \in assigned \ assigned' : m \in leaving'
       /\ \A m \in leaving \ leaving' : m \notin calls /\ asking[m] = "no" /\ ~Trusts(m)'
       /\ leaving' \ leaving \subseteq assigned \ assigned']_vars

\* Time goes on for everybody alike.
TimePasses ==
    [][held' > held =>
        /\ held' = held + 1
        /\ \A m \in Members : asked'[m] = asked[m] + 1 \/ (asked[m] = RenewEvery /\ asked'[m] = RenewEvery)
        /\ \A m \in Members : trust'[m] = trust[m] + 1 \/ (trust[m] = LockTrust /\ trust'[m] = LockTrust)]_vars

\* A fault robs those who believe that they have the lock; a grant ends it.
RobbedRightly ==
    [][robbed' # robbed =>
        \/ \E m \in robbed : robbed' = robbed \ {m} /\ asking[m] = "asked" /\ asking'[m] = "granted"
        \/ holder' = Nobody /\ robbed' \ robbed \subseteq {m \in Members : Trusts(m) \/ m \in calls} /\ robbed \subseteq robbed'
        \/ \E m \in calls : robbed' = robbed \cup {m}]_vars

\* What may happen can happen: nothing is kept only because this module forbids what would break it.
NeverStuck ==
    /\ \A m \in Members :
        /\ m \notin assigned \cup leaving => ENABLED (Next /\ assigned' = assigned \cup {m})
        /\ m \in assigned => ENABLED (Next /\ leaving' = leaving \cup {m} /\ assigned' = assigned \ {m})
        /\ m \in assigned /\ asking[m] = "no" /\ asked[m] = RenewEvery => ENABLED (Next /\ asking'[m] = "asked")
        /\ asking[m] = "asked" => ENABLED (Next /\ asking'[m] \in {"granted", "refused"})
        /\ asking[m] # "no" => ENABLED (Next /\ asking'[m] = "no" /\ trust' = trust /\ holder' = holder)
        /\ asking[m] = "granted" => ENABLED (Next /\ asking'[m] = "no" /\ trust'[m] = 0)
        /\ asking[m] = "refused" => ENABLED (Next /\ asking'[m] = "no" /\ trust'[m] = LockTrust)
        /\ m \in leaving \ calls /\ asking[m] = "no" =>
            /\ ENABLED (Next /\ leaving' = leaving \ {m} /\ holder' # m)
            /\ ENABLED (Next /\ leaving' = leaving \ {m} /\ holder' = holder)
        /\ m \in assigned \ calls /\ trust[m] < LockTrust => ENABLED (Next /\ calls' = calls \cup {m})
        /\ m \in calls => ENABLED (Next /\ calls' = calls \ {m})
        /\ m \in calls \ robbed => ENABLED (Next /\ m \in robbed' /\ holder' = holder)
    /\ holder # Nobody => ENABLED (Next /\ holder' = Nobody /\ leaving' = leaving)
    /\ holder # Nobody /\ held < LockLease /\ (\A m \in Members : asking[m] = "no")
       /\ (\A m \in assigned : asked[m] < RenewEvery) /\ (holder \in calls => holder \in robbed \/ held + 1 < LockLease)
       => ENABLED (Next /\ held' = held + 1)

-----------------------------------------------------------------------------
(* Liveness *)

\* Whoever keeps the queue, alone, goes on consuming it.
OwnerConsumes == \A m \in Members : <>[](assigned = {m}) => []<>(m \in calls)

=============================================================================
