------------------------ MODULE RetryDroppedAtTheEnd -------------------------
(* After the last retry the broker answers, and stores nothing. *)
EXTENDS MCRetry

MutantSendBack(i) ==
    /\ i \in failed
    /\ \A p \in sent : log[p].from # i
    /\ log' = IF log[i].times >= RetriesMax THEN log ELSE Append(log, Copy(i))
    /\ sent' = IF log[i].times >= RetriesMax THEN sent ELSE sent \cup {Len(log) + 1}
    /\ failed' = IF log[i].times >= RetriesMax THEN failed \ {i} ELSE failed
    /\ done' = IF log[i].times >= RetriesMax THEN done \cup {i} ELSE done
    /\ UNCHANGED <<safe, moved, now, calls, consumed, faults>>
==============================================================================
