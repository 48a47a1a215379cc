---------------------- MODULE DeliveryCommitOfThePulled ----------------------
(* The group's offset is committed for pulled messages instead of delivered ones. *)
EXTENDS MCDelivery

MutantCommitOffset(q, offset) ==
    /\ serving
    /\ committed[q] < offset /\ offset <= Len(queue[q])
    /\ committed' = [committed EXCEPT ![q] = offset]
    /\ UNCHANGED <<answer, sends, queue, seen, promise, serving>>
==============================================================================
