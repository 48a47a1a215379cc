------------------------- MODULE ElectionVotesTwice -------------------------
(* A voter ignores the vote that it has already given in this term. *)
EXTENDS MCElection

MutantVoteResult(m) ==
    LET n == m.target
    IN  IF ~UpToDate(m.endTerm, m.endIndex, EndTerm(log[n]), Len(log[n])) THEN "REJECT_SMALL_LEDGER_END_INDEX"
        ELSE IF m.term < term[n] THEN "REJECT_EXPIRED_VOTE_TERM"
        ELSE IF m.term > term[n] THEN "REJECT_TERM_NOT_READY"
        ELSE "ACCEPT"
==============================================================================
