----------------------- MODULE BroadcastLastIsStored -------------------------
(* The file contains the place after the last message that is consumed, not that of the first one that is not.
   *)
EXTENDS MCBroadcast

MutantOffset(m, q) ==
    IF got[m][q] = {} THEN file[m][q] ELSE (CHOOSE i \in got[m][q] : \A j \in got[m][q] : j <= i) + 1
==============================================================================
