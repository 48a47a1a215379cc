------------------------------ MODULE MCBroadcast -------------------------------
(* Broadcast with a bounded number of messages. The ends of members are not bounded. *)
EXTENDS Broadcast

CONSTANT LengthMax \* the most messages in a queue

MCStore(q) == stored[q] < LengthMax /\ Store(q)

MCNext ==
    \/ \E q \in Queues : Create(q) \/ MCStore(q)
    \/ \E m \in Members : Start(m) \/ Die(m)
    \/ \E m \in Members, q \in Queues : Begin(m, q) \/ Pull(m, q) \/ Persist(m, q)
    \/ \E m \in Members, q \in Queues, i \in 1..LengthMax : Consume(m, q, i)

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness

\* Liveness: each member consumes each message from where it began.
EachGetsAll ==
    \A m \in Members, q \in Queues, i \in 1..LengthMax :
        stored[q] >= i ~> (i \in got[m][q] \/ first[m][q] > i)

(* Each fairness clause is necessary: without it EachGetsAll fails. *)
WithoutStartFairness == MCSpec /\ Begins /\ Pulls /\ Consumes /\ DeathsEnd
WithoutBeginFairness == MCSpec /\ Starts /\ Pulls /\ Consumes /\ DeathsEnd
WithoutPullFairness == MCSpec /\ Starts /\ Begins /\ Consumes /\ DeathsEnd
WithoutConsumeFairness == MCSpec /\ Starts /\ Begins /\ Pulls /\ DeathsEnd
WithoutEndOfDeaths == MCSpec /\ Starts /\ Begins /\ Pulls /\ Consumes

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
NoMessageForBoth == \A m, n \in Members, q \in Queues : m # n => got[m][q] \cap got[n][q] = {}
NoLateMember == \A m \in Members, q \in Queues : first[m][q] < 2
NoNewQueue == \A m \in alive, q \in Queues : next[m][q] # 0 => q \in old[m]
NoRestart == \A m \in Members, q \in Queues : next[m][q] = 0 => file[m][q] = 0
NoRepetition == \A m \in Members, q \in Queues : next[m][q] # 0 => \A i \in got[m][q] : i < next[m][q]
NoLaterFirst == \A m \in Members, q \in Queues : \A i \in held[m][q], j \in got[m][q] : j < i
NoStoredMeanwhile == \A m \in Members, q \in Queues : next[m][q] = 0 /\ file[m][q] # 0 => stored[q] < file[m][q]
=================================================================================
