---------------------------- MODULE GuaranteeCells ----------------------------
(***************************************************************************)
(* Reads the guarantee matrix off Guarantee: `mqproof matrix` runs it with *)
(* -continue, so that each cell's first, and so shortest, way to each      *)
(* outcome is told as a counterexample; all others are passed over.        *)
(* A cell that nothing is told of, when TLC has seen every state, is safe. *)
(***************************************************************************)
EXTENDS MCGuarantee, TLC

ASSUME TLCSet(1, {}) \* what has been told

Outcome ==
    IF ~NoAckedGone THEN "gone"
    ELSE IF ~NoAckedLost THEN "slave"
    ELSE IF ~NoSilentLoss THEN "silent"
    ELSE IF ~NoLoss THEN "told"
    ELSE "safe"

Cell == <<flush, replication, producer, Kinds, Len(struck), Outcome>>

NoOutcome ==
    \/ Outcome = "safe"
    \/ Cell \in TLCGet(1)
    \/ TLCSet(1, TLCGet(1) \cup {Cell}) /\ FALSE
===============================================================================
