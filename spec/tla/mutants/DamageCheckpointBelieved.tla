---------------------- MODULE DamageCheckpointBelieved ----------------------
(* A start does not compare the checkpoint with its checksum. *)
EXTENDS MCDamage

MutantKnown == checkpoint.count
=============================================================================
