-------------------------- MODULE TimersRolledTwice --------------------------
(* A rolled message stays in the table beside its copy (issue 11156). *)
EXTENDS MCTimers

MutantRoll(t) ==
    /\ ready
    /\ Count("timer", t) < CopiesMax
    /\ \E i \in Waits(t) : log' = Append(log, Record("timer", t, log[i].due))
    /\ UNCHANGED <<begin, safe, memory, now, producer>>
==============================================================================
