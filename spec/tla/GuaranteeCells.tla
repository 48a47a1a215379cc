---------------------------- MODULE GuaranteeCells ----------------------------
(***************************************************************************)
(* Reads the guarantee matrix off Guarantee: `mqproof matrix` runs it with *)
(* -continue, so that each cell's first, and so shortest, way to each      *)
(* outcome is told as a counterexample; all others are passed over.        *)
(* A cell of which only "safe" is told when TLC has seen every state is    *)
(* safe; one of which nothing is told cannot happen.                       *)
(***************************************************************************)
EXTENDS MCGuarantee, TLC

ASSUME TLCSet(1, {}) \* what has been told

Outcome ==
    IF ~NoAckedGone THEN "gone"
    ELSE IF ~NoAckedLost THEN "slave"
    ELSE IF ~NoSilentLoss THEN "silent"
    ELSE IF ~NoLoss THEN "told"
    ELSE "safe"

Cell == <<"cell", flush, replication, producer, Kinds, Len(struck), Outcome>>

\* Told once for each cell and outcome; it is a counterexample unless it is safe.
NoOutcome ==
    \/ Cell \in TLCGet(1)
    \/ TLCSet(1, TLCGet(1) \cup {Cell}) /\ PrintT(Cell) /\ Outcome = "safe"
===============================================================================
