---------------------- MODULE SelectionFailureRejects ------------------------
(* A message at which the function of a filter server fails, or has no fuel left, counts as rejected. *)
EXTENDS MCSelection

MutantAnswer(last) ==
    /\ pull # NoPull
    /\ answer = NoAnswer
    /\ last \in pull.from..Len(queue)
    /\ \E failed \in SUBSET Found(last) :
        /\ Cardinality(Found(last) \ failed) <= BatchMax
        /\ answer' = [next |-> last + 1, found |-> Found(last) \ failed]
    /\ UNCHANGED <<queue, wanted, position, pull, received, judged>>
==============================================================================
