---------------------- MODULE DamageRefusedWithoutName ----------------------
(* The error of a refused start does not name the file. *)
EXTENDS MCDamage

MutantRefuse ==
    /\ phase = "down"
    /\ Problem # "none"
    /\ phase' = "refused"
    /\ UNCHANGED <<named, files, memory, peer, reported, history, struck>>
=============================================================================
