-------------------------- MODULE GroupStartsAtZero --------------------------
(* An offset that is out of range moves the group to the beginning of the queue (issue 2181): all messages
   are delivered again without a request. *)
EXTENDS MCGroup

MutantStartOffset(q) ==
    0
==============================================================================
