--------------------------- MODULE BroadcastShipped -----------------------------
(* A deviation of released consumers, which follows from the documented rule for first offsets. *)
EXTENDS MCBroadcast

\* A queue without an offset in the file of the member is read from its end, also if it was created while the member
\* runs and has messages already.
FromEnd(m, q) == IF file[m][q] # 0 THEN file[m][q] ELSE stored[q] + 1
=================================================================================
