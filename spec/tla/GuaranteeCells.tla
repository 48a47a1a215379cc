---------------------------- MODULE GuaranteeCells ----------------------------
(***************************************************************************)
(* Derives the guarantee matrix from Guarantee. `mqproof matrix` runs this *)
(* model with -continue, so TLC reports the first, and therefore shortest, *)
(* path to each outcome of each cell as a counterexample and ignores all   *)
(* others. After TLC has seen every state, a cell for which only "safe"    *)
(* was printed is safe. A cell for which nothing was printed cannot occur. *)
(***************************************************************************)
EXTENDS MCGuarantee, TLC

ASSUME TLCSet(1, {}) \* the cells and outcomes printed so far

Outcome ==
    IF ~NoAckedGone THEN "gone"
    ELSE IF ~NoAckedLost THEN "slave"
    ELSE IF ~NoSilentLoss THEN "silent"
    ELSE IF ~NoLoss THEN "error"
    ELSE "safe"

Cell == <<"cell", flush, replication, producer, Kinds, Len(struck), Outcome>>

\* Prints each cell and outcome once. It is FALSE, and so gives a counterexample, unless the outcome is
\* "safe".
NoOutcome ==
    \/ Cell \in TLCGet(1)
    \/ TLCSet(1, TLCGet(1) \cup {Cell}) /\ PrintT(Cell) /\ Outcome = "safe"
===============================================================================
