---------------------------- MODULE MCQueueChoice ----------------------------
(* QueueChoice, as it is: everything in it is bounded by its constants. *)
EXTENDS QueueChoice

MCNext == Send \/ Surroundings

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ SendFairness

(* Each fairness clause is needed: without it the liveness property fails. *)
WithoutEndFairness == MCSpec /\ WF_vars(tried # <<>> /\ Attempt)
WithoutRetryFairness == MCSpec /\ WF_vars(Failed \/ \E ticks \in Penalties : Answered(ticks))

(* Probes: each of these is false somewhere, which shows that its action, or the situation, does happen. *)
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
