------------------------ MODULE GroupCorrectedForward ------------------------
(* A member that requests an offset within its queue is corrected to the end (as in issue 9728, where the
   bounds of a queue are wrong after a start). Delivery has no such step. *)
EXTENDS MCGroup

MutantCorrectOffset(q) ==
    /\ serving
    /\ \E c \in Consumers : Reads(c, q) /\ position[c][q] < Len(queue[q])
    /\ committed' = [committed EXCEPT ![q] = Len(queue[q])]
    /\ position' = [c \in Consumers |-> [position[c] EXCEPT ![q] = IF @ = Idle THEN Idle ELSE Len(queue[q])]]
    /\ UNCHANGED <<answer, sends, queue, promise, serving, seen, assigned, due>>
==============================================================================
