----------------------------- MODULE RetryShipped -----------------------------
(* Deviations of released brokers and consumers. A configuration selects one of them. *)
EXTENDS MCRetry

\* All releases: the broker answers SUCCESS before the copy is flushed or replicated, also under SYNC_FLUSH.
AnsweredAtOnce(p) == p \in sent

\* All releases: for a group without retry queues the broker answers SUCCESS, and stores nothing.
DroppedWithoutQueues(i) ==
    /\ i \in failed
    /\ failed' = failed \ {i}
    /\ done' = done \cup {i}
    /\ UNCHANGED <<broker, calls, sent, consumed, faults>>

\* Issue 8900: a message is consumed successfully, and sent back nevertheless.
SentBackAfterSuccess(i) ==
    /\ i \in calls
    /\ calls' = calls \ {i}
    /\ failed' = failed \cup {i}
    /\ consumed' = consumed \cup {i}
    /\ UNCHANGED <<broker, sent, done, faults>>
===============================================================================
