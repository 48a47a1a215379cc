----------------------- MODULE DeliveryLastNeverFound ------------------------
(* A message at the end of a queue is found only when another one follows it (as in issue 7355). *)
EXTENDS MCDelivery

MutantDeliver(q, i) ==
    /\ serving
    /\ i < Len(queue[q]) /\ i <= Len(seen[q]) + 1
    /\ seen' = [seen EXCEPT ![q] = Prefix(@, i - 1) \o <<queue[q][i]>> \o SubSeq(@, i + 1, Len(@))]
    /\ UNCHANGED <<answer, sends, queue, committed, promise, serving>>
==============================================================================
