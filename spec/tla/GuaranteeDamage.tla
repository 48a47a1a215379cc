--------------------------- MODULE GuaranteeDamage ----------------------------
(***************************************************************************)
(* The columns of the guarantee matrix for a damaged disk: in one node, a  *)
(* record that was durable is no longer what was written. A flipped bit    *)
(* altered it, or its write never reached the disk. Damage shows in detail *)
(* what the node does: here it leaves the record out, and repairs it from  *)
(* the other node if that one has it.                                      *)
(*                                                                         *)
(* Abstraction: a node reads from its disk, not from its page cache, so    *)
(* damage is seen at once.                                                 *)
(***************************************************************************)
EXTENDS GuaranteeCells

CONSTANT Damages \* the kinds of damage that may happen

ASSUME Damages \subseteq {"flip", "lost"}

VARIABLE damaged \* by node: the positions of the records that are damaged
DamagedOK == \A n \in Nodes : damaged[n] \subseteq 1..Len(log[n])

DamageInit == Init /\ damaged = [n \in Nodes |-> {}]

Other(n) == IF n = "master" THEN "slave" ELSE "master"

Same == UNCHANGED damaged

\* The steps without a fault; the slave does not write a record that is not sound.
MCSend(m) == Send(m) /\ Same
MCRetry(m) == Retry(m) /\ Same
MCGiveUp(m) == GiveUp(m) /\ Same
MCAppendRecord(m) == AppendRecord(m) /\ Same
MCAnswerOk(m) == AnswerOk(m) /\ Same
MCAnswerDiskTimeout(m) == AnswerDiskTimeout(m) /\ Same
MCAnswerSlaveTimeout(m) == AnswerSlaveTimeout(m) /\ Same
MCFlushLog(n) == FlushLog(n) /\ Same
MCTransfer == Transfer /\ Len(log["slave"]) + 1 \notin damaged["master"] /\ Same
MCReport == Report /\ Same

DamageBlock(kind, n, i) ==
    /\ MayStrike
    /\ kind \in Damages
    /\ up[n] # "gone"
    /\ i \in 1..flushed[n]
    /\ damaged' = [damaged EXCEPT ![n] = @ \cup {i}]
    /\ struck' = struck \o <<[fault |-> kind, node |-> n]>>
    /\ UNCHANGED <<modes, up, files, reported, answer>>

Repairable(n, i) ==
    /\ i \in damaged[n]
    /\ Running("master") /\ Running("slave")
    /\ i <= Len(log[Other(n)]) /\ i \notin damaged[Other(n)]
    /\ log[Other(n)][i] = log[n][i]

RepairRecord(n, i) ==
    /\ Repairable(n, i)
    /\ damaged' = [damaged EXCEPT ![n] = @ \ {i}]
    /\ UNCHANGED vars

DamageNext ==
    \/ \E m \in Messages :
        \/ MCSend(m) \/ MCRetry(m) \/ MCGiveUp(m) \/ MCAppendRecord(m)
        \/ MCAnswerOk(m) \/ MCAnswerDiskTimeout(m) \/ MCAnswerSlaveTimeout(m)
    \/ \E n \in Nodes : MCFlushLog(n)
    \/ MCTransfer \/ MCReport
    \/ \E n \in Nodes, i \in 1..Cardinality(Messages) : RepairRecord(n, i)
    \/ \E n \in Nodes, i \in 1..Cardinality(Messages), kind \in Damages : DamageBlock(kind, n, i)

DamageSpec == DamageInit /\ [][DamageNext]_<<vars, damaged>>

\* What is in a log counts only if it is not damaged, and the fate of a message is settled when it is repaired.
SoundInLog(m, n) == \E i \in 1..Len(log[n]) : log[n][i] = m /\ i \notin damaged[n]
SettledAndRepaired ==
    /\ \A n \in Nodes : up[n] # "down"
    /\ \A n \in Nodes, i \in 1..Cardinality(Messages) : ~Repairable(n, i)

\* One damaged record is never the end of a message that the slave has acknowledged.
SyncMasterSurvivesDamage == replication = "SYNC_MASTER" => NoAckedLost
===============================================================================
