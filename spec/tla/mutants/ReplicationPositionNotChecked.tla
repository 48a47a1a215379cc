-------------------- MODULE ReplicationPositionNotChecked --------------------
(* The slave appends whatever frame arrives, at the end of its log. *)
EXTENDS MCReplication

MutantContinues(frame) ==
    verified
==============================================================================
