----------------------- MODULE FlushAckOfTheNextFlush -----------------------
(* Group commit answers a request that arrived while the fsync was already running. *)
EXTENDS MCFlush

MutantMayAnswer(m) ==
    mode = "SYNC_FLUSH" => Position(m) <= flushed + 1
==============================================================================
