------------------------- MODULE FlushAckBeforeFlush -------------------------
(* The broker answers when the record is in the page cache, whatever the flush mode. *)
EXTENDS MCFlush

MutantMayAnswer(m) ==
    TRUE
==============================================================================
