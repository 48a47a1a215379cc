----------------------- MODULE DeliveryUnsentDelivered -----------------------
(* A dispatcher that finds unreadable bytes continues after them, and delivers an unsent message from
   there. *)
EXTENDS MCDelivery

MutantDeliver(q, i) ==
    /\ serving
    /\ i = Len(seen[q]) + 1 /\ i <= Longest
    /\ \E m \in Messages : seen' = [seen EXCEPT ![q] = Append(@, m)]
    /\ UNCHANGED <<answer, sends, queue, committed, promise, serving>>
==============================================================================
