------------------------- MODULE TransactionsShipped ---------------------------
(* Deviations of released brokers, each with the number of its issue. A configuration selects one of them. *)
EXTENDS MCTransactions

CONSTANT Broken \* the transactions whose half message makes the check loop fail with an exception

\* Issue 544: the loop passes a message in its immunity time, and does not come back to it.
ShippedDone(i) ==
    LET records == SubSeq(log, 1, safe)
    IN \A t \in Halves(log)[i].of : t \in young \/ Evidence(records, t) \/ Latest(records, t) > i

\* Issue 1517: the check does not see an operation that is not written yet, nor the final message.
ShippedMayCheck(t) == ready /\ Latest(log, t) > progress /\ ~Has(log, "op", t) /\ t \notin young

\* Issue 8311: the loop decides about a message before it has pulled all operations.
DiscardedUnread(t) == Latest(log, t) > progress /\ (ready => ~Ended(t)) /\ t \notin young

\* Issue 9500: after an exception the loop begins again at the same place, and never gets past it.
StopsAtException(t) ==
    /\ ready /\ Open(t) /\ t \notin young
    /\ \A i \in progress + 1..Latest(log, t) : Halves(log)[i].of \cap Broken = {}

\* Issue 8158: a repeated commit writes the message again.
RepeatedEnd(t, half, end) ==
    /\ ready
    /\ Request(t, half, end) \in requests
    /\ Named(t, half)
    /\ Count("final", t) < 2
    /\ log' = IF end = "commit" THEN Append(log, Record("final", {t}, 0)) ELSE log
    /\ pending' = pending \cup {t}
    /\ UNCHANGED <<safe, ready, progress, young, phase, requests>>

\* The message of a transaction without an exception is committed, rolled back or discarded.
OthersEnd == \A t \in Txs \ Broken : phase[t] \in {"running", "commit"} ~> Evidence(log, t)
================================================================================
