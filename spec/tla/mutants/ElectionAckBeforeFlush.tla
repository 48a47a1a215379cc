----------------------- MODULE ElectionAckBeforeFlush -----------------------
(* Leader and followers count entries that are only in the page cache (as DLedger does). *)
EXTENDS MCElection

MutantKept(n) ==
    Len(log[n])
==============================================================================
