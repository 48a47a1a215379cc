------------------------- MODULE ElectionStandsAgain -------------------------
(* A leader that crashed stands again in its own term, although it may have lost entries that others have
   (as in DLedger). *)
EXTENDS MCElection

MutantStandsFrom(n) ==
    term[n]
==============================================================================
