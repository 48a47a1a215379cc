------------------------- MODULE ElectionStandsAgain -------------------------
(* A leader that crashed stands again in its own term, though it may have lost entries that others have (as DLedger). *)
EXTENDS MCElection

MutantStandsFrom(n) ==
    term[n]
==============================================================================
