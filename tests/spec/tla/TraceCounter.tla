---------------------------- MODULE TraceCounter ----------------------------
(* Accepts the traces of takes and adds that Counter explains. Drop writes no event. *)
EXTENDS Counter, TraceData

VARIABLES t, l

event == Traces[t][l]
IsEvent(kind) == l <= Len(Traces[t]) /\ event.kind = kind /\ l' = l + 1 /\ UNCHANGED t

TraceInit == Init /\ t \in DOMAIN Traces /\ l = 1
TraceNext ==
    \/ IsEvent("take") /\ \E n \in Nodes : Take(n)
    \/ IsEvent("add") /\ \E n \in Nodes : Add(n, event.by)
    \/ Drop /\ UNCHANGED <<t, l>>
TraceView == <<vars, t, l>>
=============================================================================
