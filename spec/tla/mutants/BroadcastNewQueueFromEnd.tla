---------------------- MODULE BroadcastNewQueueFromEnd -----------------------
(* A queue that is created while a member runs is read from its end. *)
EXTENDS MCBroadcast

MutantStartPlace(m, q) ==
    IF file[m][q] # 0 THEN file[m][q] ELSE stored[q] + 1
==============================================================================
