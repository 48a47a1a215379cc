------------------------------ MODULE TraceLock ------------------------------
(* Is a log of the lock server a behaviour of Lock? A client's request leaves no event in the log. *)
EXTENDS Lock, TraceData, Sequences

VARIABLES t, l   \* the index of the log, and the index of its next event

event == Traces[t][l]
IsEvent(kind) == l <= Len(Traces[t]) /\ event.kind = kind /\ l' = l + 1 /\ UNCHANGED t

TraceInit == Init /\ t \in DOMAIN Traces /\ l = 1
TraceNext ==
    \/ IsEvent("granted") /\ Grant(event.client)
    \/ IsEvent("released") /\ Release(event.client)
    \/ \E c \in Clients : Request(c) /\ UNCHANGED <<t, l>>
TraceView == <<vars, t, l>>
=============================================================================
