-------------------------- MODULE RetryMovedEarly ----------------------------
(* A delayed copy is moved as soon as it is safe. *)
EXTENDS MCRetry

MutantMove(i) ==
    /\ Len(log) < RecordsMax
    /\ i \in 1..safe
    /\ Waits(i)
    /\ FirstOfLevel(i)
    /\ log' = Append(log, Retried(i))
    /\ moved' = moved \cup {i}
    /\ UNCHANGED <<safe, now, member, faults>>
==============================================================================
