---------------------- MODULE ReplicationOldOffsetsWin ----------------------
(* The slave replaces newer offsets that were committed to it by its master's offsets (as in issue 1094). *)
EXTENDS MCReplication

MutantMergedOffset(own, masters) ==
    masters
=============================================================================
