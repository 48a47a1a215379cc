---------------------------- MODULE MCReplication ----------------------------
(* Replication, bounded: the numbers of crashes, of cuts and of strangers are limited. Messages are sent in one order,
   because their names do not matter. In models that do not check offsets, the consumer commits none. *)
EXTENDS Replication

CONSTANTS MaxCrashes, MaxCuts, MaxStrangers, Commits

MCAppendRecord(m) ==
    /\ answer[m] = "unsent"
    /\ m = CHOOSE next \in Messages : answer[next] = "unsent"
    /\ AppendRecord(m)
MCCommitOffset(n) == Commits /\ CommitOffset(n)

MayCrash == faults.process + faults.master + faults.slave < MaxCrashes

MCProcessCrash(n) == MayCrash /\ ProcessCrash(n)
MCSystemCrash(n, length) == MayCrash /\ SystemCrash(n, length)
MCMachineLoss == MayCrash /\ MachineLoss
MCCut == faults.cuts < MaxCuts /\ Cut
MCStrangerAcknowledges == faults.strangers < MaxStrangers /\ StrangerAcknowledges

MCNext ==
    \/ Decide \/ Flush \/ Replicate \/ Consume \/ SyncOffsets \/ Restart
    \/ \E m \in Messages : MCAppendRecord(m)
    \/ \E n \in Nodes : MCCommitOffset(n)
    \/ \E n \in Nodes : MCProcessCrash(n) \/ \E length \in 0..Cardinality(Messages) : MCSystemCrash(n, length)
    \/ MCMachineLoss \/ MCCut \/ MCStrangerAcknowledges

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness

(* Each fairness clause is necessary: without it a liveness property fails. *)
WithoutFlushFairness ==
    /\ MCSpec /\ TimeoutFairness /\ AnswerFairness /\ ConnectFairness /\ TransferFairness /\ ReceiveFairness
    /\ DeliverFairness /\ StartFairness
WithoutTimeoutFairness ==
    /\ MCSpec /\ FlushFairness /\ AnswerFairness /\ ConnectFairness /\ TransferFairness /\ ReceiveFairness
    /\ DeliverFairness /\ StartFairness
WithoutAnswerFairness ==
    /\ MCSpec /\ FlushFairness /\ TimeoutFairness /\ ConnectFairness /\ TransferFairness /\ ReceiveFairness
    /\ DeliverFairness /\ StartFairness
WithoutConnectFairness ==
    /\ MCSpec /\ FlushFairness /\ TimeoutFairness /\ AnswerFairness /\ TransferFairness /\ ReceiveFairness
    /\ DeliverFairness /\ StartFairness
WithoutTransferFairness ==
    /\ MCSpec /\ FlushFairness /\ TimeoutFairness /\ AnswerFairness /\ ConnectFairness /\ ReceiveFairness
    /\ DeliverFairness /\ StartFairness
WithoutReceiveFairness ==
    /\ MCSpec /\ FlushFairness /\ TimeoutFairness /\ AnswerFairness /\ ConnectFairness /\ TransferFairness
    /\ DeliverFairness /\ StartFairness
WithoutDeliverFairness ==
    /\ MCSpec /\ FlushFairness /\ TimeoutFairness /\ AnswerFairness /\ ConnectFairness /\ TransferFairness
    /\ ReceiveFairness /\ StartFairness
WithoutStartFairness ==
    /\ MCSpec /\ FlushFairness /\ TimeoutFairness /\ AnswerFairness /\ ConnectFairness /\ TransferFairness
    /\ ReceiveFairness /\ DeliverFairness

(* Refinement: the abstract queue is the log that the two brokers hold together. Every status except
   SEND_OK is ambiguous. The abstract offset is the slave's, which survives the loss of the master. The
   abstract broker serves while either broker is up. *)
AbstractAnswer(status) ==
    CASE status \in {"unsent", "waiting"} -> status
      [] status = "SEND_OK" -> "acked"
      [] OTHER -> "unknown"

Abstract ==
    INSTANCE Delivery WITH
        Queues <- {"q0"},
        answer <- [m \in Messages |-> AbstractAnswer(answer[m])],
        sends <- [m \in Messages |-> IF answer[m] = "unsent" THEN 0 ELSE 1],
        queue <- [q \in {"q0"} |-> Kept],
        seen <- [q \in {"q0"} |-> seen],
        committed <- [q \in {"q0"} |-> committed["slave"]],
        promise <- Promised,
        serving <- \E n \in Nodes : phase[n] = "up"

abstracted == <<modes, phase, log, committed, answer, seen, forked, recalled, faults>> \* what Abstract is computed from

(* A master that serves without the tail of its slave creates two queues. Users then see something other
   than Delivery. UNCHANGED comes first only because it takes TLC less time: most steps change nothing of Delivery. *)
RefinesDelivery ==
    Abstract!Init /\ [][UNCHANGED abstracted \/ UNCHANGED Abstract!vars \/ Abstract!Next \/ forked']_Abstract!vars

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
NoFlushTimeout == Answered("FLUSH_DISK_TIMEOUT") = {}
NoSlaveTimeout == Answered("FLUSH_SLAVE_TIMEOUT") = {}
NoSlaveNotAvailable == Answered("SLAVE_NOT_AVAILABLE") = {}
NoUnavailableWhileConnected == connected["master"] => \A m \in Messages : request[m].replica # "SLAVE_NOT_AVAILABLE"
NoBothTimeouts == \A m \in Messages : request[m].flush = "waiting" \/ request[m].replica = "waiting"
NoUnknown == Answered("unknown") = {}
NoProcessCrash == faults.process = 0
NoMasterSystemCrash == faults.master = 0
NoSlaveSystemCrash == faults.slave = 0
NoMachineLoss == phase["master"] # "gone"
NoCut == faults.cuts = 0
NoStranger == faults.strangers = 0
NoHalfOpenMaster == connected["master"] => connected["slave"]
NoHalfOpenSlave == connected["slave"] => connected["master"]
NoSlaveTailLost == \A m \in held : InLog(m, log["slave"])
NoSlaveAhead == phase["master"] = "down" => IsPrefix(log["slave"], log["master"])
NoFork == ~forked
NoRefusal == ~refused
NoRecall == ~recalled
NoAckedOnSlaveOnly == Covered => \A m \in Answered("SEND_OK") : InLog(m, log["master"])
NoOffsetBeyondEnd == phase["master"] = "up" => Len(seen) <= Len(log["master"])
NoRefusedReport == [][\A frame \in network : ~RefuseReport(frame)]_vars
NoSlaveRead == [][phase["master"] # "up" => seen' = seen]_vars
NoCorrection == [][Len(seen') >= Len(seen)]_vars
NoForkByLateFrame == [][phase["master"] = "up" => forked' = forked]_vars
NoOffsetSynced == [][~SyncOffsets]_vars
=============================================================================
