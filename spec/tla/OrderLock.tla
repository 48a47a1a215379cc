----------------------------- MODULE OrderLock ------------------------------
(***************************************************************************)
(* Orderly consumption: a member of a group consumes a queue only while it *)
(* holds the queue's lock at the broker. The broker drops a lock that is   *)
(* not renewed. The member trusts its lock for a shorter time. This module *)
(* is separate from Group because it needs only one part of it: which      *)
(* members consider the queue their own.                                   *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - Queues: there is one, because locks of different queues are          *)
(*    independent.                                                         *)
(*  - Offsets and messages: Group models them; here a call of the listener *)
(*    begins and ends.                                                     *)
(*  - Rebalancing: a member may gain or drop the queue at any time, and    *)
(*    several members may own it in their own view.                        *)
(*  - Time: a tick is ten seconds; a request is answered or times out      *)
(*    within one tick, and due actions are taken before the next.          *)
(*  - Clocks: all run at the same speed; a stopped clock is modelled as a  *)
(*    stall.                                                               *)
(*  - Unlocking is a one-way request that arrives at once or never.        *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Members,     \* the members of one group
    LockLease,   \* the broker drops a lock that is not renewed for this many ticks: 6
    LockTrust,   \* a member trusts a granted lock for this many ticks: 3
    RenewEvery   \* ticks between two renewals: 2

ASSUME /\ Members # {} /\ LockLease \in Nat /\ LockTrust \in Nat /\ RenewEvery \in Nat
       /\ 0 < RenewEvery /\ RenewEvery <= LockTrust /\ LockTrust < LockLease

NoMember == "none"

Capped(n, most) == IF n < most THEN n + 1 ELSE most

-----------------------------------------------------------------------------
(* State *)

VARIABLE assigned \* the members that own the queue after their last rebalance
AssignedOK == assigned \subseteq Members

VARIABLE leaving  \* the members that dropped the queue and have not unlocked it yet
LeavingOK == leaving \subseteq Members

VARIABLE holder   \* the broker's lock table: the holder of the lock
HolderOK == holder \in Members \cup {NoMember}

VARIABLE held     \* ticks since the lock was last granted; from LockLease on, any member may take it over
HeldOK == held \in 0..LockLease

VARIABLE asking   \* the lock request of a member: none, in progress, or its answer
AskingOK == asking \in [Members -> {"no", "asked", "granted", "refused"}]

VARIABLE asked    \* ticks since the member's last request
AskedOK == asked \in [Members -> 0..RenewEvery]

VARIABLE trust    \* ticks since the member last received a grant; from LockTrust on it does not trust the lock
TrustOK == trust \in [Members -> 0..LockTrust]

VARIABLE calls    \* the members whose listener is processing a message of the queue
CallsOK == calls \subseteq Members

VARIABLE lostLock   \* history: the members whose lock was lost by a fault, until it is granted to them again
LostLockOK == lostLock \subseteq Members

vars == <<assigned, leaving, holder, held, asking, asked, trust, calls, lostLock>>

TypeOK == AssignedOK /\ LeavingOK /\ HolderOK /\ HeldOK /\ AskingOK /\ AskedOK /\ TrustOK /\ CallsOK /\ LostLockOK

Init ==
    /\ assigned = {}
    /\ leaving = {}
    /\ holder = NoMember
    /\ held = 0
    /\ asking = [m \in Members |-> "no"]
    /\ asked = [m \in Members |-> RenewEvery]
    /\ trust = [m \in Members |-> LockTrust]
    /\ calls = {}
    /\ lostLock = {}

Trusts(m) == trust[m] < LockTrust

-----------------------------------------------------------------------------
(* Rebalancing *)

\* A rebalance assigns the queue to the member, but not while the member still has to unlock it.
Gain(m) ==
    /\ m \notin assigned
    /\ m \notin leaving
    /\ assigned' = assigned \cup {m}
    /\ UNCHANGED <<leaving, holder, held, asking, asked, trust, calls, lostLock>>

Drop(m) ==
    /\ m \in assigned
    /\ assigned' = assigned \ {m}
    /\ leaving' = leaving \cup {m}
    /\ UNCHANGED <<holder, held, asking, asked, trust, calls, lostLock>>

-----------------------------------------------------------------------------
(* The lock *)

\* The first request for the lock, or a renewal.
Ask(m) ==
    /\ m \in assigned
    /\ asking[m] = "no"
    /\ asked[m] = RenewEvery
    /\ asking' = [asking EXCEPT ![m] = "asked"]
    /\ asked' = [asked EXCEPT ![m] = 0]
    /\ UNCHANGED <<assigned, leaving, holder, held, trust, calls, lostLock>>

Free(m) == holder \in {m, NoMember} \/ held = LockLease

\* The broker answers.
LockQueue(m) ==
    /\ asking[m] = "asked"
    /\ asking' = [asking EXCEPT ![m] = IF Free(m) THEN "granted" ELSE "refused"]
    /\ holder' = IF Free(m) THEN m ELSE holder
    /\ held' = IF Free(m) THEN 0 ELSE held
    /\ lostLock' = IF Free(m) THEN lostLock \ {m} ELSE lostLock
    /\ UNCHANGED <<assigned, leaving, asked, trust, calls>>

Hear(m) ==
    /\ asking[m] \in {"granted", "refused"}
    /\ trust' = [trust EXCEPT ![m] = IF asking[m] = "granted" THEN 0 ELSE LockTrust]
    /\ asking' = [asking EXCEPT ![m] = "no"]
    /\ UNCHANGED <<assigned, leaving, holder, held, asked, calls, lostLock>>

\* The request or its answer is lost, and the request times out.
Lose(m) ==
    /\ asking[m] # "no"
    /\ asking' = [asking EXCEPT ![m] = "no"]
    /\ UNCHANGED <<assigned, leaving, holder, held, asked, trust, calls, lostLock>>

\* Only after the listener has returned, and while no request of the member is in progress.
MayUnlock(m) == m \in leaving /\ m \notin calls /\ asking[m] = "no"

Left(m) ==
    /\ leaving' = leaving \ {m}
    /\ trust' = [trust EXCEPT ![m] = LockTrust]
    /\ UNCHANGED <<assigned, asking, asked, calls, lostLock>>

UnlockQueue(m) ==
    /\ MayUnlock(m)
    /\ holder' = IF holder = m THEN NoMember ELSE holder
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
    /\ UNCHANGED <<assigned, leaving, holder, held, asking, asked, trust, lostLock>>

End(m) ==
    /\ m \in calls
    /\ calls' = calls \ {m}
    /\ UNCHANGED <<assigned, leaving, holder, held, asking, asked, trust, lostLock>>

-----------------------------------------------------------------------------
(* Time and faults *)

\* A listener returns before the lease of the lock ends. A listener that does not is stalled.
Tick ==
    /\ \A m \in Members : asking[m] = "no"
    /\ \A m \in assigned : asked[m] < RenewEvery
    /\ holder \in calls \ lostLock => held + 1 < LockLease
    /\ held' = IF holder = NoMember THEN 0 ELSE Capped(held, LockLease)
    /\ asked' = [m \in Members |-> Capped(asked[m], RenewEvery)]
    /\ trust' = [m \in Members |-> Capped(trust[m], LockTrust)]
    /\ <<held, asked, trust>>' # <<held, asked, trust>>
    /\ UNCHANGED <<assigned, leaving, holder, asking, calls, lostLock>>

\* The lock table is only in memory. A broker that starts or takes over has an empty table.
Restart ==
    /\ holder # NoMember
    /\ holder' = NoMember
    /\ held' = 0
    /\ asking' = [m \in Members |-> "no"]
    /\ lostLock' = lostLock \cup {m \in Members : Trusts(m) \/ m \in calls}
    /\ UNCHANGED <<assigned, leaving, asked, trust, calls>>

\* A listener, or the whole process, stands still while time passes.
Stall(m) ==
    /\ m \in calls
    /\ m \notin lostLock
    /\ lostLock' = lostLock \cup {m}
    /\ UNCHANGED <<assigned, leaving, holder, held, asking, asked, trust, calls>>

-----------------------------------------------------------------------------
(* Next and Spec *)

Member(m) ==
    \/ Gain(m) \/ Drop(m) \/ Ask(m) \/ LockQueue(m) \/ Hear(m) \/ Lose(m) \/ UnlockQueue(m) \/ LoseUnlock(m)
    \/ Begin(m) \/ End(m) \/ Stall(m)

Next == (\E m \in Members : Member(m)) \/ Tick \/ Restart

\* Due actions are taken, listeners return, and not every request is lost. A lock that is never unlocked ends
\* with its lease, so unlocking needs no fairness.
TicksOn == WF_vars(Tick)
Asks == \A m \in Members : WF_vars(Ask(m))
Answers == \A m \in Members : SF_vars(LockQueue(m))
Receives == \A m \in Members : SF_vars(Hear(m))
Begins == \A m \in Members : SF_vars(Begin(m))
Ends == \A m \in Members : WF_vars(End(m))

Fairness == TicksOn /\ Asks /\ Answers /\ Receives /\ Begins /\ Ends

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

\* DELIV-13: orderly consumption never overlaps, unless a fault took the lock from one of the two members
NeverOverlaps == \A m, n \in calls \ lostLock : m = n

\* These are relations between the variables, not promises to users.
Coherent ==
    /\ holder = NoMember => held = 0
    /\ assigned \cap leaving = {}
    /\ \A m \in Members :
        /\ Trusts(m) /\ m \notin lostLock => holder = m /\ held <= trust[m]
        /\ m \in calls \ lostLock => holder = m /\ held < LockLease
        /\ asking[m] = "granted" => holder = m /\ held = 0
        /\ m \in calls \/ Trusts(m) => m \in assigned \cup leaving
        /\ asking[m] # "no" => m \in assigned \cup leaving

(* Consistency: constraints on steps. They make a wrong step fail where it is made. *)

\* The broker takes a lock from its holder only if the lease is over, the holder unlocks, or the broker lost
\* its table.
TakenOver ==
    [][holder' # holder /\ holder # NoMember =>
        \/ held = LockLease /\ \E m \in Members : asking[m] = "asked" /\ asking'[m] = "granted" /\ holder' = m
        \/ holder' = NoMember /\ holder \in leaving /\ holder \notin leaving' /\ holder \notin calls
        \/ holder' = NoMember /\ \A m \in Members : asking'[m] = "no" /\ (m \in calls \/ Trusts(m) => m \in lostLock')]_vars

\* The lock is granted only on request, and only if the member holds it, no member holds it, or the lease is
\* over.
GrantedRightly ==
    [][\A m \in Members : asking'[m] # asking[m] =>
        /\ asking'[m] = "granted" =>
            /\ asking[m] = "asked"
            /\ holder \in {m, NoMember} \/ held = LockLease
            /\ holder' = m /\ held' = 0
        /\ asking'[m] = "refused" =>
            /\ asking[m] = "asked"
            /\ holder \notin {m, NoMember} /\ held < LockLease
            /\ UNCHANGED <<holder, held>>
        /\ asking'[m] = "asked" => m \in assigned /\ asking[m] = "no" /\ asked[m] = RenewEvery /\ asked'[m] = 0]_vars

\* Trust starts with a grant. It ends with time, a refusal, or the loss of the queue.
TrustsRightly ==
    [][\A m \in Members :
        /\ trust'[m] < trust[m] => asking[m] = "granted" /\ asking'[m] = "no" /\ trust'[m] = 0
        /\ trust'[m] > trust[m] =>
            \/ trust'[m] = trust[m] + 1 /\ \A n \in Members : asking[n] = "no"
            \/ asking[m] = "refused" /\ trust'[m] = LockTrust
            \/ m \in leaving /\ m \notin leaving' /\ trust'[m] = LockTrust]_vars

\* A call begins only with a trusted lock. One call begins or ends at a time.
CallsRightly ==
    [][calls' # calls =>
        \/ \E m \in assigned : Trusts(m) /\ m \notin calls /\ calls' = calls \cup {m}
        \/ \E m \in calls : calls' = calls \ {m}]_vars

\* A member gains the queue only if it has nothing to unlock. It unlocks the queue only after it dropped it.
GivenBack ==
    [][/\ \A m \in assigned' \ assigned : m \notin leaving
       /\ \A m \in assigned \ assigned' : m \in leaving'
       /\ \A m \in leaving \ leaving' : m \notin calls /\ asking[m] = "no" /\ ~Trusts(m)'
       /\ leaving' \ leaving \subseteq assigned \ assigned']_vars

\* Time passes equally for all members.
TimePasses ==
    [][held' > held =>
        /\ held' = held + 1
        /\ \A m \in Members : asked'[m] = asked[m] + 1 \/ (asked[m] = RenewEvery /\ asked'[m] = RenewEvery)
        /\ \A m \in Members : trust'[m] = trust[m] + 1 \/ (trust[m] = LockTrust /\ trust'[m] = LockTrust)]_vars

\* A fault adds to `lostLock` only members that trust their lock or are in a call. A grant removes a member.
LostByFault ==
    [][lostLock' # lostLock =>
        \/ \E m \in lostLock : lostLock' = lostLock \ {m} /\ asking[m] = "asked" /\ asking'[m] = "granted"
        \/ holder' = NoMember /\ lostLock' \ lostLock \subseteq {m \in Members : Trusts(m) \/ m \in calls} /\ lostLock \subseteq lostLock'
        \/ \E m \in calls : lostLock' = lostLock \cup {m}]_vars

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive.
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
        /\ m \in calls \ lostLock => ENABLED (Next /\ m \in lostLock' /\ holder' = holder)
    /\ holder # NoMember => ENABLED (Next /\ holder' = NoMember /\ leaving' = leaving)
    /\ holder # NoMember /\ held < LockLease /\ (\A m \in Members : asking[m] = "no")
       /\ (\A m \in assigned : asked[m] < RenewEvery) /\ (holder \in calls => holder \in lostLock \/ held + 1 < LockLease)
       => ENABLED (Next /\ held' = held + 1)

-----------------------------------------------------------------------------
(* Liveness *)

\* A member that remains the only owner of the queue continues to consume it.
OwnerConsumes == \A m \in Members : <>[](assigned = {m}) => []<>(m \in calls)

=============================================================================
