-------------------- MODULE ReplicationPositionNotChecked --------------------
(* The slave appends any frame that arrives at the end of its log. *)
EXTENDS MCReplication

MutantContinues(frame) ==
    verified
==============================================================================
