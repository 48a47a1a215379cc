----------------------- MODULE ReplicationNotCompared -----------------------
(* The slave requests the records after its log and compares only the position (as in all released
   versions). *)
EXTENDS MCReplication

MutantFirstReport(length) ==
    length

MutantContinues(frame) ==
    frame.position = Len(log["slave"])
=============================================================================
