---------------------- MODULE FlushOnlyLastWaiterWoken ----------------------
(* After an fsync only the newest of the waiting requests is woken. *)
EXTENDS MCFlush

MutantMayAnswer(m) ==
    mode = "SYNC_FLUSH" => Position(m) = flushed
==============================================================================
