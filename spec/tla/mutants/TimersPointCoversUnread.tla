----------------------- MODULE TimersPointCoversUnread -----------------------
(* A point covers messages that are not in the table yet. *)
EXTENDS MCTimers

MutantPoint ==
    /\ ready
    /\ Cardinality({i \in 1..Len(log) : log[i].kind = "point"}) < PointsMax
    /\ log' = Append(log, PointRecord(Upto, Len(log), ScanFrom))
    /\ UNCHANGED <<begin, safe, memory, now, producer>>
==============================================================================
