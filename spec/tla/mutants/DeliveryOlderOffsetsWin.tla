----------------------- MODULE DeliveryOlderOffsetsWin -----------------------
(* A restarted old master's older offsets win over newer ones, although the broker that serves never went down
   (issue 1094). *)
EXTENDS MCDelivery

MutantRollBack(q, offset) ==
    /\ offset < committed[q]
    /\ committed' = [committed EXCEPT ![q] = offset]
    /\ UNCHANGED <<answer, sends, queue, seen, promise, serving>>
==============================================================================
