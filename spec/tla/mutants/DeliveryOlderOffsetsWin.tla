----------------------- MODULE DeliveryOlderOffsetsWin -----------------------
(* The older offsets of a restarted old master replace newer ones, although the serving broker never
   stopped (issue 1094). *)
EXTENDS MCDelivery

MutantRollBack(q, offset) ==
    /\ offset < committed[q]
    /\ committed' = [committed EXCEPT ![q] = offset]
    /\ UNCHANGED <<answer, sends, queue, seen, promise, serving>>
==============================================================================
