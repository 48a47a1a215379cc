---------------------- MODULE ElectionEndTermIsCurrTerm ----------------------
(* A candidate reports its own term as that of its last entry (issue 2178, DLedger 52): a stale log wins. *)
EXTENDS MCElection

MutantVotes(n) ==
    {[kind |-> "VOTE", source |-> n, target |-> p, term |-> term[n],
      endIndex |-> Len(log[n]), endTerm |-> term[n]] : p \in Peers(n)}
==============================================================================
