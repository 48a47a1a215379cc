------------------------------- MODULE MCTracing -------------------------------
(* Tracing without further bounds: the operations bound the state. *)
EXTENDS Tracing

MCNext ==
    \/ \E o \in Operations : Begin(o)
    \/ \E o \in Operations, e \in Ends : End(o, e)
    \/ Take \/ Store
    \/ \E succeeds \in BOOLEAN : Settle(succeeds)
    \/ Stop \/ Stopped \/ Crash

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness

(* Each fairness clause is necessary: without it a liveness property fails. *)
WithoutEndFairness == MCSpec /\ TakesFair /\ SettlesFair
WithoutTakeFairness == MCSpec /\ EndsFair /\ SettlesFair
WithoutSettleFairness == MCSpec /\ EndsFair /\ TakesFair

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
NoRefusal == \A o \in Operations : outcome[o] # "refused"
NoLostOperation == \A o \in Operations : outcome[o] # "lost"
NoBatchOfTwo == Cardinality(batch) < 2
NoSent == sent = {}
NoStoredButCounted == phase = "crashed" \/ topic \subseteq sent \cup batch
NoStopWithBatch == phase # "stopping" \/ batch = {}
NoEndAfterStop == phase # "stopped" \/ \A o \in Operations : outcome[o] # "running"
NoTraceWhileBatch == waiting = {} \/ batch = {}
NoTraceAfterCrash == phase # "crashed" \/ topic = {}
================================================================================
