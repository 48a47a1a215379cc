------------------------------- MODULE MCDamage --------------------------------
(* Damage, bounded: the number of faults is limited. Messages bounds everything else. *)
EXTENDS Damage

CONSTANT FaultsMax

MayStrike == Len(struck) < FaultsMax

MCDamageRecord(o, becomes) == MayStrike /\ DamageRecord(o, becomes)
MCDamageEntry(o, at) == MayStrike /\ DamageEntry(o, at)
MCDamageCheckpoint(count, sound) == MayStrike /\ DamageCheckpoint(count, sound)
MCDamageTable(c, becomes) == MayStrike /\ DamageTable(c, becomes)
MCLoseSegments(kept) == MayStrike /\ LoseSegments(kept)
MCLoseQueue == MayStrike /\ LoseQueue

MCNext ==
    \/ Send \/ Checkpoint \/ Copy \/ Stop \/ Recover \/ Refuse
    \/ \E o \in Positions : Consume(o) \/ Repair(o)
    \/ \E o \in Positions, becomes \in {"flipped", "blank"} : MCDamageRecord(o, becomes)
    \/ \E o \in Positions, at \in 0..Messages + 1 : MCDamageEntry(o, at)
    \/ \E count \in 0..Messages, sound \in BOOLEAN : MCDamageCheckpoint(count, sound)
    \/ \E c \in Copies, becomes \in {"old", "bad"} : MCDamageTable(c, becomes)
    \/ \E kept \in 0..Messages : MCLoseSegments(kept)
    \/ MCLoseQueue

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness

(* Each fairness clause is necessary, and strong where stated: without it DamageSettled fails. *)
WithoutStartFairness == MCSpec /\ Consumes /\ Repairs
WithWeakConsumeFairness == MCSpec /\ Starts /\ (\A o \in Positions : WF_vars(Consume(o))) /\ Repairs
WithWeakRepairFairness == MCSpec /\ Starts /\ Consumes /\ \A o \in Positions : WF_vars(Repair(o))

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
NoFlip == \A o \in 1..Len(log) : log[o].is # "flipped"
NoLostWrite == \A o \in 1..Len(log) : log[o].is # "blank"
NoWrongEntry == Running => \A o \in 1..Len(queue) : queue[o] = o
NoDeliveryAfterFault == struck # <<>> => read.is # "good"
NoReport == reported = {}
NoReportOfCut == \A o \in reported : o <= Len(log)
NoLossOfUncounted == \A m \in 1..Len(offsets) : offsets[m] <= Len(log)
NoReuse == \A m, n \in 1..Len(offsets) : m # n => offsets[m] # offsets[n]
NoReuseOfCounted == \A m, n \in 1..Len(offsets) : m < n /\ m \in covered => offsets[m] # offsets[n]
NoSilentLoss == read.offset # 0 /\ read.is = "nothing" => read.offset \in reported \/ read.offset > Len(log)
NoRefusal == phase # "refused"
NoRepairFromPeer == \A o \in reported : ~Good(o)
NoHoleInLog == Running => \A o \in 1..Len(log) : o < Len(log) => Good(o)
NoOldTable == table["main"] # "old"
NoPeerAhead == Len(peer) <= Len(log)
=============================================================================
