------------------------------ MODULE MCSelection -------------------------------
(* Selection with a bounded number of messages. Changes of expressions, and lost pulls, are not bounded. *)
EXTENDS Selection

CONSTANT LengthMax \* the most messages in the queue

MCStore(t) == Len(queue) < LengthMax /\ Store(t)

MCNext ==
    \/ \E t \in Tags : MCStore(t)
    \/ \E e \in Expressions : Subscribe(e)
    \/ Pull \/ Receive \/ Lose
    \/ \E last \in 1..LengthMax : Answer(last)

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness

\* Liveness: the member passes each message, selected or not, also if pulls are lost repeatedly.
AllPassed == \A i \in 1..LengthMax : Len(queue) >= i ~> position >= i

(* Each fairness clause is necessary, and strong where stated: without it AllPassed fails. *)
WithoutPullFairness == MCSpec /\ Answers /\ Receives
WithWeakAnswerFairness == MCSpec /\ Pulls /\ WF_vars(\E last \in 1..Len(queue) : Answer(last)) /\ Receives
WithWeakReceiveFairness == MCSpec /\ Pulls /\ Answers /\ WF_vars(Receive)

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
NoCollision == \A i \in answer.found : queue[i] \in pull.by
NoUntagged == \A i \in received : queue[i] # ""
NoNothingFound == answer # NoAnswer => answer.found # {}
NoChangedInPull == pull # NoPull => pull.by = wanted
NoTwoExpressions == \A i, j \in 1..position : judged[i] = judged[j]
NoPart == answer # NoAnswer => answer.next = Len(queue) + 1
=================================================================================
