---------------------- MODULE SelectionRestPassedOver ------------------------
(* The response is full, and the next offset is the end of the queue nevertheless. *)
EXTENDS MCSelection

MutantAnswer(last) ==
    /\ pull # NoPull
    /\ answer = NoAnswer
    /\ last \in pull.from..Len(queue)
    /\ Cardinality(Found(last)) <= BatchMax
    /\ answer' = [next |-> Len(queue) + 1, found |-> Found(last)]
    /\ UNCHANGED <<queue, wanted, position, pull, received, judged>>
==============================================================================
