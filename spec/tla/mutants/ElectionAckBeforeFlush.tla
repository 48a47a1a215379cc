----------------------- MODULE ElectionAckBeforeFlush -----------------------
(* Leader and followers count what is only in the page cache (as DLedger does). *)
EXTENDS MCElection

MutantKept(n) ==
    Len(log[n])
==============================================================================
