------------------------ MODULE RetryDelayedSkipped --------------------------
(* A level continues after the last copy that is due, as in issue 9249: copies before it are skipped. *)
EXTENDS MCRetry

MutantMove(i) ==
    /\ Len(log) < RecordsMax
    /\ i \in 1..safe
    /\ Waits(i)
    /\ log[i].due <= now
    /\ log' = Append(log, Retried(i))
    /\ moved' = moved \cup {j \in 1..i : Waits(j)}
    /\ UNCHANGED <<safe, now, member, faults>>
==============================================================================
