------------------------------- MODULE MCTimers -------------------------------
(* Timers, bounded: the time, the copies of a message, and the points in the log. Crashes are not bounded. *)
EXTENDS Timers

CONSTANTS
    TimeMax,   \* the last time
    CopiesMax, \* the most records of a message that waits
    PointsMax  \* the most points in the log

MCRoll(t) == Count("timer", t) < CopiesMax /\ Roll(t)

MCPoint == Cardinality({i \in 1..Len(log) : log[i].kind = "point"}) < PointsMax /\ Point

MCTick == now < TimeMax /\ Tick

\* The log is not longer than this.
LogMax == Cardinality(Msgs) * (CopiesMax + 1) + PointsMax

MCNext ==
    \/ \E t \in Msgs :
        \/ \E delay \in Delays : Send(t, delay)
        \/ Acknowledge(t) \/ AcknowledgeRecall(t) \/ Deliver(t) \/ Recall(t) \/ MCRoll(t)
    \/ Learn \/ MCPoint \/ Delete \/ Secure \/ MCTick \/ Read
    \/ \E length \in 0..LogMax : Crash(length)

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness

(* Each fairness clause is necessary, and strong where stated: without it TimerDelivered fails. *)
WithoutReadFairness == MCSpec /\ Learns /\ Delivers /\ Secures
WithoutLearnFairness == MCSpec /\ Reads /\ Delivers /\ Secures
WithWeakDeliverFairness == MCSpec /\ Reads /\ Learns /\ (\A t \in Msgs : WF_vars(Deliver(t))) /\ Secures
WithWeakSecureFairness == MCSpec /\ Reads /\ Learns /\ Delivers /\ WF_vars(Secure)

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
NoFinal == \A t \in Msgs : ~Has("final", t, 0, Len(log))
NoRecall == \A t \in Msgs : phase[t] # "recalled"
NoTimerLost == \A t \in Msgs : phase[t] = "sent" => Has("timer", t, 0, Len(log))
NoRecallOfUnknown == \A t \in Msgs : phase[t] = "sent" => ~Has("recall", t, 0, safe)
NoDeletedOriginal == \A t \in Msgs : Latest(t) > 0 => ~Has("timer", t, 0, begin)
NoDeletedFinal == \A t \in Msgs : ~Has("final", t, 0, begin)
NoCoveredWaits == ready => \A i \in waiting : i > LastPoint.read
NoUnreadAtPoint == \A i \in 1..Len(log) : log[i].kind = "point" => log[i].read = i - 1
NoFinalLost == \A t \in Msgs : ready /\ now > asked[t] /\ phase[t] = "acked" => Waits(t) = {}
===============================================================================
