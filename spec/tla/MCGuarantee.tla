----------------------------- MODULE MCGuarantee -----------------------------
(* Guarantee, bounded: the number of faults is limited. Messages bounds everything else. *)
EXTENDS Guarantee

CONSTANT MaxFaults

MayStrike == Len(struck) < MaxFaults

MCCleanStop(n) == MayStrike /\ CleanStop(n)
MCProcessCrash(n) == MayStrike /\ ProcessCrash(n)
MCOsCrash(n, kept) == MayStrike /\ OsCrash(n, kept)
MCPowerLoss(n) == MayStrike /\ PowerLoss(n)
MCDiskLost(n) == MayStrike /\ DiskLost(n)
MCMachineLost(n) == MayStrike /\ MachineLost(n)

MCFault ==
    \E n \in Nodes :
        \/ MCCleanStop(n) \/ MCProcessCrash(n) \/ MCPowerLoss(n) \/ MCDiskLost(n) \/ MCMachineLost(n)
        \/ \E kept \in 0..Cardinality(Messages) : MCOsCrash(n, kept)

MCNext == Produce \/ Serve \/ MCFault \/ \E n \in Nodes : Restart(n)

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
Answered(status) == \E m \in Messages : answer[m] = status
NoDiskTimeout == ~Answered("FLUSH_DISK_TIMEOUT")
NoSlaveTimeout == ~Answered("FLUSH_SLAVE_TIMEOUT")
NoSlaveMissing == ~Answered("SLAVE_NOT_AVAILABLE")
NoRetry == ~Answered("elsewhere")
NoGiveUp == ~Answered("error")
NoSilence == ~Answered("silence")
NoCleanStop == "clean" \notin Kinds
NoProcessCrash == "process" \notin Kinds
NoOsCrash == "os" \notin Kinds
NoPowerLoss == "power" \notin Kinds
NoDiskLost == "disk" \notin Kinds
NoMachineLost == "machine" \notin Kinds
NoDivergence == Len(log["slave"]) <= Len(log["master"])
NoFalseReport == reported <= Len(log["master"])
NoReadFromSlave == \A m \in Messages : ~(up["master"] = "gone" /\ Acked(m) /\ answer[m] # "elsewhere" /\ Readable(m))
=============================================================================
