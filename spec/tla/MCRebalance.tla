------------------------------ MODULE MCRebalance -------------------------------
(* Rebalance without further bounds: its constants bound everything. *)
EXTENDS Rebalance

MCNext ==
    \/ \E m \in Members : Start(m) \/ Die(m) \/ Poll(m)
    \/ \E m \in Members, b \in Brokers : Heartbeat(m, b) \/ Rebalance(m, b) \/ Forget(b, m)
    \/ \E b \in Brokers : Restart(b)
    \/ \E n \in Counts : Resize(n)

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness

(* Each fairness clause is necessary: without it QueuesOwned fails. *)
WithoutHeartbeatFairness == MCSpec /\ Polls /\ Rebalances /\ Forgets /\ ChangesEnd
WithoutPollFairness == MCSpec /\ Heartbeats /\ Rebalances /\ Forgets /\ ChangesEnd
WithoutRebalanceFairness == MCSpec /\ Heartbeats /\ Polls /\ Forgets /\ ChangesEnd
WithoutForgetFairness == MCSpec /\ Heartbeats /\ Polls /\ Rebalances /\ ChangesEnd
WithoutEndOfChanges == MCSpec /\ Heartbeats /\ Polls /\ Rebalances /\ Forgets

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
NotSettled == ~(Settled /\ Cardinality(alive) = Cardinality(Members))
NoTwoOwners == \A q \in 1..queues : Cardinality(Owners(q)) < 2
NoQueueWithoutOwner == ~(\A m \in alive : basis[m].queues > 0) \/ alive = {} \/ \A q \in 1..queues : Owners(q) # {}
NoMemberWithoutQueue == ~(Settled /\ \E m \in alive : share[m] = {})
NoTwoQueuesOfOne == \A m \in alive : Cardinality(share[m]) < 2
NoOtherOrder == \A b, c \in Brokers : Len(known[b]) = 2 /\ Len(known[c]) = 2 => known[b] = known[c]
NoUnlisted == \A m \in alive : basis[m].queues > 0 => m \in basis[m].ids
NoOldRoute == \A m \in alive : route[m] = queues
NoDeadMember == \A b \in Brokers : Ids(b) \subseteq alive
=================================================================================
