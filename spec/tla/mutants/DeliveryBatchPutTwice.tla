------------------------ MODULE DeliveryBatchPutTwice ------------------------
(* A batch that does not fit the end of a segment is put twice (issue 4466). *)
EXTENDS MCDelivery

MutantStore(q, m) ==
    /\ serving
    /\ answer[m] # "unsent"
    /\ Copies(m, queue) = 0
    /\ queue' = [queue EXCEPT ![q] = @ \o <<m, m>>]
    /\ UNCHANGED <<answer, sends, seen, committed, promise, serving>>
==============================================================================
