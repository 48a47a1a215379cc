---------------------- MODULE DeliveryCommitOfThePulled ----------------------
(* The group's offset is stored for what was pulled, not for what was handed out. *)
EXTENDS MCDelivery

MutantCommitOffset(q, offset) ==
    /\ serving
    /\ committed[q] < offset /\ offset <= Len(queue[q])
    /\ committed' = [committed EXCEPT ![q] = offset]
    /\ UNCHANGED <<answer, sends, queue, seen, promise, serving>>
==============================================================================
