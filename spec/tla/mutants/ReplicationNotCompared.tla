----------------------- MODULE ReplicationNotCompared -----------------------
(* The slave asks for what follows its log and compares nothing but the position (as all released versions). *)
EXTENDS MCReplication

MutantFirstReport(length) ==
    length

MutantContinues(frame) ==
    frame.position = Len(log["slave"])
=============================================================================
