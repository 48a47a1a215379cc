----------------------- MODULE SelectionNothingPassed ------------------------
(* The next offset is that of the first message that was not selected. *)
EXTENDS MCSelection

MutantAnswer(last) ==
    /\ pull # NoPull
    /\ answer = NoAnswer
    /\ last \in pull.from..Len(queue)
    /\ Found(last) # {}
    /\ Cardinality(Found(last)) <= BatchMax
    /\ answer' = [next |-> last + 1, found |-> Found(last)]
    /\ UNCHANGED <<queue, wanted, position, pull, received, judged>>
==============================================================================
