------------------------ MODULE BroadcastFileNotRead -------------------------
(* A member that starts again begins at the end. *)
EXTENDS MCBroadcast

MutantStartPlace(m, q) ==
    IF q \in old[m] THEN stored[q] + 1 ELSE 1
==============================================================================
