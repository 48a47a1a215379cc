---------------------- MODULE ReplicationOldOffsetsWin ----------------------
(* The slave takes its master's offsets over newer ones that were committed to it (as in issue 1094). *)
EXTENDS MCReplication

MutantMergedOffset(own, masters) ==
    masters
=============================================================================
