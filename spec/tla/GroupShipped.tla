----------------------------- MODULE GroupShipped -----------------------------
(* Deviations of released consumers and brokers from Group. See docs/explanation/as-shipped.md for the details. *)
EXTENDS MCGroup

\* 4.9.8 (issue 2708): the client treats any error of the broker, such as busy, as "no offset is stored". A
\* member of a group that begins at the last offset then starts after all stored messages.
OffsetQueryFails(c, q) ==
    /\ serving
    /\ assigned[q] = c /\ ~Reads(c, q)
    /\ position' = [position EXCEPT ![c][q] = Len(queue[q])]
    /\ due' = Again(q, committed[q])
    /\ UNCHANGED <<broker, seen, assigned>>

\* All releases: the broker stores any offset from any member. The last commit of the previous owner may be
\* late.
LateCommit(c, q) ==
    /\ serving
    /\ assigned[q] # c /\ Reads(c, q) /\ position[c][q] < committed[q]
    /\ committed' = [committed EXCEPT ![q] = position[c][q]]
    /\ UNCHANGED <<answer, sends, queue, promise, serving, seen, members>>

\* Issue 1094: offsets were committed to the slave while the master was down. The master restarts with the
\* offsets of its file, and the slave, which was serving all the time, takes them over.
OldMasterReturns(q, offset) ==
    /\ serving
    /\ offset < committed[q]
    /\ committed' = [committed EXCEPT ![q] = offset]
    /\ UNCHANGED <<answer, sends, queue, promise, serving, seen, members>>

QueryFailsSpec == MCInit /\ [][MCNext \/ \E c \in Consumers, q \in Queues : OffsetQueryFails(c, q)]_vars
LateCommitSpec == MCInit /\ [][MCNext \/ \E c \in Consumers, q \in Queues : LateCommit(c, q)]_vars
OldMasterSpec == MCInit /\ [][MCNext \/ \E q \in Queues : \E n \in 0..Longest : OldMasterReturns(q, n)]_vars

=============================================================================
