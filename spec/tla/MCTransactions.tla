---------------------------- MODULE MCTransactions -----------------------------
(* Transactions without further bounds: the transactions and the checks bound the log. Crashes are not bounded. *)
EXTENDS Transactions

\* The half queue is not longer than this.
HalvesMax == Cardinality(Txs) * (ChecksMax + 1)

\* The log is not longer than this: half messages and copies, the end of each transaction, and its operation.
LogMax == HalvesMax + 2 * Cardinality(Txs)

MCNext ==
    \/ \E t \in Txs :
        \/ Send(t) \/ Acknowledge(t) \/ Commit(t) \/ Abort(t) \/ Check(t) \/ Discard(t) \/ Ripen(t)
        \/ \E half \in 1..HalvesMax, end \in Ends : Report(t, half, end) \/ End(t, half, end)
    \/ WriteOperations \/ Advance \/ Secure \/ Read
    \/ \E length \in 0..LogMax, stored \in 0..HalvesMax : Crash(length, stored)

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness

(* Each fairness clause is necessary, and strong where stated: without it a liveness property fails. *)
WithoutReadFairness == MCSpec /\ Ripens /\ Checks /\ Discards /\ Secures /\ Advances /\ Writes
WithoutRipenFairness == MCSpec /\ Reads /\ Checks /\ Discards /\ Secures /\ Advances /\ Writes
WithWeakCheckFairness ==
    MCSpec /\ Reads /\ Ripens /\ (\A t \in Txs : WF_log(Check(t))) /\ Discards /\ Secures /\ Advances /\ Writes
WithWeakDiscardFairness ==
    MCSpec /\ Reads /\ Ripens /\ Checks /\ (\A t \in Txs : WF_log(Discard(t))) /\ Secures /\ Advances /\ Writes
WithWeakSecureFairness == MCSpec /\ Reads /\ Ripens /\ Checks /\ Discards /\ WF_safe(Secure) /\ Advances /\ Writes
WithoutAdvanceFairness == MCSpec /\ Reads /\ Ripens /\ Checks /\ Discards /\ Secures /\ Writes

WithoutWriteFairness == MCSpec /\ Reads /\ Ripens /\ Checks /\ Discards /\ Secures /\ Advances

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
NoCommit == \A t \in Txs : ~Has(log, "final", t)
NoRollback == \A t \in Txs : ~(Has(log, "op", t) /\ ~Has(log, "final", t) /\ ~Has(log, "discarded", t))
NoDiscard == \A t \in Txs : ~Has(log, "discarded", t)
NoDiscardOfCommitted == \A t \in Txs : ~(Has(log, "discarded", t) /\ phase[t] = "commit")
NoHalfLost == \A t \in Txs : phase[t] = "new" \/ Latest(log, t) > 0
NoOtherHalf == \A r \in requests : r.half <= Len(Halves(log)) => r.tx \in Halves(log)[r.half].of
NoFinalWithoutOperation == \A t \in Txs : Has(log, "final", t) /\ ~Has(log, "op", t) => t \in pending
NoRepeatedRequest == \A r \in requests : ~Ended(r.tx)
NoBatch == Cardinality(pending) < 2
NoCommitAfterRollback == \A r, s \in requests : r.tx = s.tx => r.end = s.end
NoEndOfAnOlderCopy == \A r \in requests : Ended(r.tx) => r.half >= Latest(log, r.tx)
=============================================================================
