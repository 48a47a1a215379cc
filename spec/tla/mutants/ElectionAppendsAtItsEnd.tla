----------------------- MODULE ElectionAppendsAtItsEnd -----------------------
(* A follower appends a pushed entry at the end of its log, whatever its index (batch bookkeeping, DLedger
   134). *)
EXTENDS MCElection

MutantHandlePush(m) ==
    LET n == m.target
    IN  /\ m.kind = "PUSH" /\ Follows(n, m) /\ Arrives(m)
        /\ Len(log[n]) < m.index
        /\ log' = [log EXCEPT ![n] = Append(@, m.entry)]
        /\ UNCHANGED <<file, durable, nodeState, commit, network, answer, calm, history>>
==============================================================================
