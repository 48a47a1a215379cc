----------------------------- MODULE GroupShipped -----------------------------
(* What released consumers and brokers do otherwise than Group; docs/explanation/as-shipped.md tells the stories. *)
EXTENDS MCGroup

\* 4.9.8 (issue 2708): any error of the broker, such as being busy, is taken for "no offset is stored", and a member of
\* a group that begins at the last offset begins behind everything.
OffsetQueryFails(c, q) ==
    /\ serving
    /\ assigned[q] = c /\ ~Reads(c, q)
    /\ position' = [position EXCEPT ![c][q] = Len(queue[q])]
    /\ owed' = Again(q, committed[q])
    /\ UNCHANGED <<broker, seen, assigned>>

\* All releases: the broker stores whatever offset it is told, by whoever; the last word of the previous owner is late.
LateCommit(c, q) ==
    /\ serving
    /\ assigned[q] # c /\ Reads(c, q) /\ position[c][q] < committed[q]
    /\ committed' = [committed EXCEPT ![q] = position[c][q]]
    /\ UNCHANGED <<answer, sends, queue, promise, serving, seen, members>>

\* Issue 1094: while the master was away, offsets were committed to the slave. The master comes back with those of its
\* file, and the slave, which serves all the time, takes them over.
OldMasterReturns(q, offset) ==
    /\ serving
    /\ offset < committed[q]
    /\ committed' = [committed EXCEPT ![q] = offset]
    /\ UNCHANGED <<answer, sends, queue, promise, serving, seen, members>>

QueryFailsSpec == MCInit /\ [][MCNext \/ \E c \in Consumers, q \in Queues : OffsetQueryFails(c, q)]_vars
LateCommitSpec == MCInit /\ [][MCNext \/ \E c \in Consumers, q \in Queues : LateCommit(c, q)]_vars
OldMasterSpec == MCInit /\ [][MCNext \/ \E q \in Queues : \E n \in 0..Longest : OldMasterReturns(q, n)]_vars

=============================================================================
