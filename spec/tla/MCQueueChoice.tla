---------------------------- MODULE MCQueueChoice ----------------------------
(* QueueChoice without further bounds: its constants bound everything. *)
EXTENDS QueueChoice

MCNext == Send \/ Surroundings

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ SendFairness

(* Each fairness clause is necessary: without it the liveness property fails. *)
WithoutEndFairness == MCSpec /\ WF_vars(tried # <<>> /\ Attempt)
WithoutRetryFairness == MCSpec /\ WF_vars(Failed \/ \E ticks \in Penalties : Answered(ticks))

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
NoFailure == waiting \/ tried = <<>>
NoLastAttempt == Len(tried) < AttemptsMax
NoRetryAtTheOnlyBroker == Len(tried) < 2 \/ Cardinality(route) > 1
NoOneAvailable == strategy /\ route # {} => Available # {}
NoneAvailableAtRetry == tried # <<>> /\ ~waiting /\ strategy => Available # {}
NoRetryAtTheLastAvailable == ~(strategy /\ tried # <<>> /\ ~waiting /\ Available = {Last} /\ route # {Last})
NoEmptyRoute == route # {}
NoPartialRoute == route = {} \/ route = Brokers
NoSlowAnswer == \A b \in Brokers : penalty[b] = 0 \/ penalty[b] = Isolation
=============================================================================
