--------------------------- MODULE MCLeaderLease ---------------------------
(* LeaderLease with a bounded number of terms. Transfers are not bounded. Two candidates among three nodes show the
   same behaviour as three, with fewer states. *)
EXTENDS LeaderLease

CONSTANTS
    Candidates, \* the nodes that may become candidates; the others only vote
    MaxTerm

\* A node that cannot enter another term does not leave its current term.
MCGiveUp(n) == n \in Candidates /\ term[n] < MaxTerm /\ GiveUp(n)
MCStepDown(n) == term[n] < MaxTerm /\ StepDown(n)
MCStandAgain(n) == n \in Candidates /\ term[n] < MaxTerm /\ StandAgain(n)
MCTakeOver(m) == m.target \in Candidates /\ TakeOver(m)
MCTransfer(n, p) == term[n] < MaxTerm /\ Transfer(n, p)

MCNext ==
    \/ \E n \in Nodes : MCGiveUp(n) \/ MCStepDown(n) \/ MCStandAgain(n) \/ Commit(n) \/ HandOver(n)
    \/ \E n \in Nodes, voters \in SUBSET Nodes : Elect(n, voters)
    \/ \E n, p \in Nodes : HeartBeat(n, p) \/ MCTransfer(n, p)
    \/ \E m \in network : NotSent(m) \/ Refuse(m) \/ Lose(m) \/ MCTakeOver(m)

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness

(* The fairness clause is necessary: without it TransferEventuallyEnds fails. *)
WithoutHandOverFairness == MCSpec

(* Requests selected by their fields, for the comparison with the reference. *)
Pending(s, t, number) == {m \in network : m.source = s /\ m.target = t /\ m.term = number}

MCNotSentRequest(s, t, number) == \E m \in Pending(s, t, number) : NotSent(m)
MCRefuseRequest(s, t, number) == \E m \in Pending(s, t, number) : Refuse(m)
MCLoseRequest(s, t, number) == \E m \in Pending(s, t, number) : Lose(m)
MCTakeOverRequest(s, t, number) == \E m \in Pending(s, t, number) : MCTakeOver(m)
=============================================================================
