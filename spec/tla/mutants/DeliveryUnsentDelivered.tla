----------------------- MODULE DeliveryUnsentDelivered -----------------------
(* A dispatcher that meets bytes it cannot read goes on behind them, and an unsent message is delivered from there. *)
EXTENDS MCDelivery

MutantDeliver(q, i) ==
    /\ serving
    /\ i = Len(seen[q]) + 1 /\ i <= Longest
    /\ \E m \in Messages : seen' = [seen EXCEPT ![q] = Append(@, m)]
    /\ UNCHANGED <<answer, sends, queue, committed, promise, serving>>
==============================================================================
