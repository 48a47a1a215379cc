----------------------- MODULE GuaranteeAckBeforeFlush -----------------------
(* The broker answers when the record is in the page cache, whatever the flush mode. *)
EXTENDS MCGuarantee

MutantFlushedFor(m) ==
    TRUE
==============================================================================
