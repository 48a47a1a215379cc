------------------------------ MODULE Guarantee ------------------------------
(***************************************************************************)
(* The fate of a message under each configuration of RocketMQ and each     *)
(* fault. The model contains one broker group (a master and possibly a     *)
(* slave, each with a page cache over its disk), a producer, and another   *)
(* master that does not fail. The guarantee matrix is derived from this    *)
(* module. A behaviour has fixed modes and records its faults, so it       *)
(* belongs to one cell of the matrix.                                      *)
(*                                                                         *)
(* This module is coarser than Flush, which models how one broker keeps    *)
(* its log, and Replication, which models how two brokers agree. It covers *)
(* both at once, and the producer. Where our Replication is stricter, this *)
(* module follows released brokers: logs are not compared, and a report    *)
(* beyond the master's end counts.                                         *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - Consume queues: a broker with the record in its log can deliver it,  *)
(*    as Flush shows.                                                      *)
(*  - Torn records: recovery removes them, so a crash of the machine keeps *)
(*    a prefix.                                                            *)
(*  - Consumers: they read from the master while it runs, otherwise from   *)
(*    the slave, as released clients do; Delivery models their offsets.    *)
(*  - The network: a request arrives or is lost with the broker's process, *)
(*    and an answer always arrives; Flush and Replication model slow       *)
(*    answers.                                                             *)
(*  - Segments: the log has one, so an empty slave receives all of it.     *)
(*  - Retries: a synchronous send continues until another master has the   *)
(*    message, because its caller sees the exception and sends again.      *)
(*  - The off-heap pool, DLedger and the controller of 5.x are left out.   *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Messages,         \* the messages that the producer may send, strings
    FlushModes,       \* flushDiskType, the same on both nodes
    ReplicationModes, \* brokerRole of the master; "none" is a master without slave
    ProducerModes,    \* the kinds of send to explore
    Faults            \* the kinds of faults that may occur

ASSUME /\ FlushModes \subseteq {"SYNC_FLUSH", "ASYNC_FLUSH"}
       \* "SYNC_MASTER_5X" is SYNC_MASTER as released in 5.x, with inSyncReplicas = 1: it does not wait for
       \* the slave.
       /\ ReplicationModes \subseteq {"none", "ASYNC_MASTER", "SYNC_MASTER", "SYNC_MASTER_5X"}
       /\ ProducerModes \subseteq {"sync", "async", "oneway"}
       /\ Faults \subseteq {"clean", "process", "os", "power", "disk", "machine"}

Nodes == {"master", "slave"}

Prefix(sequence, length) == SubSeq(sequence, 1, length)

Max(a, b) == IF a < b THEN b ELSE a

-----------------------------------------------------------------------------
(* State *)

VARIABLE flush       \* never changes
FlushOK == flush \in FlushModes

VARIABLE replication \* never changes
ReplicationOK == replication \in ReplicationModes

VARIABLE producer    \* never changes
ProducerOK == producer \in ProducerModes

VARIABLE up          \* a node that is down will be restarted; a node that is gone will not
UpOK == up \in [Nodes -> {"running", "down", "gone"}]

VARIABLE log         \* the commit log as a reader of the files sees it: page cache over disk
LogOK == \A n \in Nodes : log[n] \in Seq(Messages)

VARIABLE flushed     \* the number of durable records of the log
FlushedOK == \A n \in Nodes : flushed[n] \in 0..Len(log[n])

VARIABLE reported    \* memory of the master: the highest position that a slave has ever reported to it
ReportedOK == reported \in Nat

VARIABLE answer      \* the status of each message, as its producer knows it
Stored == {"SEND_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE"}
Answers == Stored \cup {"unsent", "sent", "waiting", "broken", "silence", "error", "elsewhere"}
AnswerOK == answer \in [Messages -> Answers]

VARIABLE struck      \* history: the faults so far, in order, each with its node
StruckOK == struck \in Seq([fault : Faults, node : Nodes])

modes == <<flush, replication, producer>>
files == <<log, flushed>>
vars == <<modes, up, files, reported, answer, struck>>

TypeOK ==
    /\ FlushOK /\ ReplicationOK /\ ProducerOK
    /\ UpOK /\ LogOK /\ FlushedOK /\ ReportedOK /\ AnswerOK /\ StruckOK

Init ==
    /\ flush \in FlushModes
    /\ replication \in ReplicationModes
    /\ producer \in ProducerModes
    /\ up = [n \in Nodes |-> IF n = "slave" /\ replication = "none" THEN "gone" ELSE "running"]
    /\ log = [n \in Nodes |-> <<>>] /\ flushed = [n \in Nodes |-> 0]
    /\ reported = 0
    /\ answer = [m \in Messages |-> "unsent"]
    /\ struck = <<>>

-----------------------------------------------------------------------------
(* The producer *)

Running(n) == up[n] = "running"

\* The master does not run: the call fails at once.
Refused == IF producer = "oneway" THEN "error" ELSE "broken"

Send(m) ==
    /\ answer[m] = "unsent"
    /\ answer' = [answer EXCEPT ![m] = IF Running("master") THEN "sent" ELSE Refused]
    /\ UNCHANGED <<modes, up, files, reported, struck>>

\* The connection broke: the producer sends again to another master, which stores the message.
Retry(m) ==
    /\ answer[m] = "broken"
    /\ answer' = [answer EXCEPT ![m] = "elsewhere"]
    /\ UNCHANGED <<modes, up, files, reported, struck>>

\* An asynchronous send that has used up its time or its retries reports the error to its callback.
GiveUp(m) ==
    /\ answer[m] = "broken"
    /\ producer = "async"
    /\ answer' = [answer EXCEPT ![m] = "error"]
    /\ UNCHANGED <<modes, up, files, reported, struck>>

-----------------------------------------------------------------------------
(* The master; the actions follow a message from append to answer *)

Position(m) == CHOOSE i \in 1..Len(log["master"]) : log["master"][i] = m

WaitsForSlave == replication = "SYNC_MASTER"

\* The record is in the page cache. The master does not wait for a slave that is not connected. A oneway send
\* never waits.
AppendRecord(m) ==
    /\ Running("master")
    /\ answer[m] = "sent"
    /\ log' = [log EXCEPT !["master"] = @ \o <<m>>]
    /\ answer' = [answer EXCEPT ![m] =
            IF producer = "oneway" THEN "silence"
            ELSE IF WaitsForSlave /\ ~Running("slave") THEN "SLAVE_NOT_AVAILABLE"
            ELSE "waiting"]
    /\ UNCHANGED <<modes, up, flushed, reported, struck>>

\* An fsync returns.
FlushLog(n) ==
    /\ Running(n)
    /\ flushed[n] < Len(log[n])
    /\ flushed' = [flushed EXCEPT ![n] = Len(log[n])]
    /\ UNCHANGED <<modes, up, log, reported, answer, struck>>

\* The slave requests the records after the end of its own log. Neither side checks that the earlier records
\* agree.
Transfer ==
    /\ Running("master") /\ Running("slave")
    /\ Len(log["slave"]) < Len(log["master"])
    /\ log' = [log EXCEPT !["slave"] = @ \o <<log["master"][Len(@) + 1]>>]
    /\ UNCHANGED <<modes, up, flushed, reported, answer, struck>>

\* The slave reports the end of its page cache. The master accepts the report even beyond its own end.
Report ==
    /\ Running("master") /\ Running("slave")
    /\ Len(log["slave"]) > reported
    /\ reported' = Len(log["slave"])
    /\ UNCHANGED <<modes, up, files, answer, struck>>

FlushedFor(m) == flush = "SYNC_FLUSH" => Position(m) <= flushed["master"]
ReplicatedFor(m) == WaitsForSlave => Position(m) <= reported

Answer(m, status) ==
    /\ Running("master")
    /\ answer[m] = "waiting"
    /\ answer' = [answer EXCEPT ![m] = status]
    /\ UNCHANGED <<modes, up, files, reported, struck>>

AnswerOk(m) == Answer(m, "SEND_OK") /\ FlushedFor(m) /\ ReplicatedFor(m)
AnswerDiskTimeout(m) == Answer(m, "FLUSH_DISK_TIMEOUT") /\ ~FlushedFor(m)
AnswerSlaveTimeout(m) == Answer(m, "FLUSH_SLAVE_TIMEOUT") /\ ~ReplicatedFor(m)

-----------------------------------------------------------------------------
(* Faults *)

\* The process of n ends. Producers that wait for the master see only a broken connection.
Breaks(n) ==
    answer' = [m \in Messages |->
        IF n = "slave" \/ answer[m] \notin {"sent", "waiting"} THEN answer[m]
        ELSE IF producer = "oneway" THEN "silence" ELSE "broken"]

Strike(fault, n, becomes, kept) ==
    /\ fault \in Faults
    /\ struck' = struck \o <<[fault |-> fault, node |-> n]>>
    /\ up' = [up EXCEPT ![n] = becomes]
    /\ log' = [log EXCEPT ![n] = Prefix(@, kept)]
    /\ reported' = IF n = "master" THEN 0 ELSE reported
    /\ Breaks(n)
    /\ UNCHANGED modes

\* An orderly stop: waiting producers are answered first, and everything is durable.
CleanStop(n) ==
    /\ Running(n)
    /\ n = "master" => \A m \in Messages : answer[m] # "waiting"
    /\ flushed[n] = Len(log[n])
    /\ Strike("clean", n, "down", Len(log[n]))
    /\ UNCHANGED flushed

\* SIGKILL: the page cache survives.
ProcessCrash(n) ==
    /\ Running(n)
    /\ Strike("process", n, "down", Len(log[n]))
    /\ UNCHANGED flushed

\* The operating system crashes. Any part of the page cache may have been written to disk.
OsCrash(n, kept) ==
    /\ up[n] # "gone"
    /\ kept \in flushed[n]..Len(log[n])
    /\ Strike("os", n, "down", kept)
    /\ UNCHANGED flushed

\* The power fails. The whole page cache is lost.
PowerLoss(n) ==
    /\ up[n] # "gone"
    /\ Strike("power", n, "down", flushed[n])
    /\ UNCHANGED flushed

LoseFiles(n) == flushed' = [flushed EXCEPT ![n] = 0]

\* The disk is destroyed. The broker may be restarted with a new, empty disk.
DiskLost(n) ==
    /\ up[n] # "gone"
    /\ Strike("disk", n, "down", 0)
    /\ LoseFiles(n)

\* The machine is destroyed with all its data.
MachineLost(n) ==
    /\ up[n] # "gone"
    /\ Strike("machine", n, "gone", 0)
    /\ LoseFiles(n)

\* Recovery syncs the log that it finds. A master restarts as master, whatever log its slave has.
Restart(n) ==
    /\ up[n] = "down"
    /\ up' = [up EXCEPT ![n] = "running"]
    /\ flushed' = [flushed EXCEPT ![n] = Len(log[n])]
    /\ UNCHANGED <<modes, log, reported, answer, struck>>

-----------------------------------------------------------------------------
(* Next and Spec *)

Produce == \E m \in Messages : Send(m) \/ Retry(m) \/ GiveUp(m)

Serve ==
    \/ \E m \in Messages : AppendRecord(m) \/ AnswerOk(m) \/ AnswerDiskTimeout(m) \/ AnswerSlaveTimeout(m)
    \/ \E n \in Nodes : FlushLog(n)
    \/ Transfer \/ Report

Fault ==
    \E n \in Nodes :
        \/ CleanStop(n) \/ ProcessCrash(n) \/ PowerLoss(n) \/ DiskLost(n) \/ MachineLost(n)
        \/ \E kept \in 0..Cardinality(Messages) : OsCrash(n, kept)

Next == Produce \/ Serve \/ Fault \/ \E n \in Nodes : Restart(n)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* The possible outcomes for a message, from best to worst. The matrix shows the worst outcome of each
   cell. *)

\* No node is waiting for its restart.
Settled == \A n \in Nodes : up[n] # "down"

InLog(m, n) == \E i \in 1..Len(log[n]) : log[n][i] = m

\* Consumers read from the master while it runs, otherwise from the slave.
Readable(m) ==
    \/ answer[m] = "elsewhere"
    \/ IF Running("master") THEN InLog(m, "master") ELSE Running("slave") /\ InLog(m, "slave")

Kept(m) == answer[m] = "elsewhere" \/ \E n \in Nodes : InLog(m, n)

Lost(m) == Settled /\ ~Readable(m)

Acked(m) == answer[m] = "SEND_OK"
SentWithoutError(m) == answer[m] \in Stored \cup {"silence"} \* the send reported no error
SentWithError(m) == answer[m] = "error"

NoLoss == \A m \in Messages : SentWithError(m) \/ SentWithoutError(m) => ~Lost(m)
NoSilentLoss == \A m \in Messages : SentWithoutError(m) => ~Lost(m)
\* DELIV-1
NoAckedLost == \A m \in Messages : Acked(m) => ~Lost(m)
\* Some node has each acknowledged message, so an operator can recover it.
NoAckedGone == \A m \in Messages : Acked(m) => Kept(m)

-----------------------------------------------------------------------------
(* Guarantees that hold in several cells *)

Kinds == {struck[i].fault : i \in 1..Len(struck)}

QuietLosesNothing == struck = <<>> => NoLoss

AckedSurvivesProcess == Kinds \subseteq {"clean", "process"} => NoAckedLost

\* Any number of stops, crashes and power losses, at either node.
SyncFlushSurvivesPower ==
    flush = "SYNC_FLUSH" /\ Kinds \subseteq {"clean", "process", "os", "power"} => NoAckedLost

\* After one fault of any kind, under any flush mode, one of the two nodes has the message.
SyncMasterSurvivesOne == replication = "SYNC_MASTER" /\ Len(struck) <= 1 => NoAckedGone

\* While the master is gone, consumers read the message from the slave.
SlaveServesForMaster ==
    replication = "SYNC_MASTER" /\ Len(struck) <= 1 /\ up["master"] = "gone" => NoAckedLost

\* A synchronous send ends with a stored message.
SyncSendStored == producer = "sync" => \A m \in Messages : ~SentWithError(m) /\ answer[m] # "silence"

\* Orderly stops lose no message of a synchronous producer.
CleanStopLosesNothing == producer = "sync" /\ Kinds \subseteq {"clean"} => NoLoss

-----------------------------------------------------------------------------
(* Consistency: invariants on states and constraints on steps. They make a wrong step fail where it is made. *)

\* A master that does not run has no memory, and no producer waits for it.
MemoryLost ==
    up["master"] # "running" =>
        /\ reported = 0
        /\ \A m \in Messages : answer[m] \notin {"sent", "waiting"}

\* The message of a waiting producer is in the master's log.
WaitingIsLogged == \A m \in Messages : answer[m] = "waiting" => InLog(m, "master")

\* The status of a message changes only in the permitted order. UNCHANGED comes first, here and below, only because it
\* takes TLC less time.
AnsweredInOrder ==
    [][UNCHANGED answer \/ \A m \in Messages :
        answer'[m] # answer[m] =>
            /\ answer'[m] # "unsent"
            /\ answer'[m] = "sent" => answer[m] = "unsent" /\ up["master"] = "running"
            /\ answer'[m] = "waiting" => answer[m] = "sent" /\ producer # "oneway"
            /\ answer'[m] = "SLAVE_NOT_AVAILABLE" => answer[m] = "sent" /\ producer # "oneway"
            /\ answer'[m] \in Stored \ {"SLAVE_NOT_AVAILABLE"} => answer[m] = "waiting"
            /\ answer'[m] = "silence" => answer[m] = "sent" /\ producer = "oneway"
            /\ answer'[m] = "broken" => up'["master"] # "running" /\ producer # "oneway"
            /\ answer'[m] = "elsewhere" => answer[m] = "broken"
            /\ answer'[m] = "error" /\ producer = "oneway" => answer[m] = "unsent" /\ up["master"] # "running"
            /\ answer'[m] = "error" /\ producer # "oneway" => answer[m] = "broken" /\ producer = "async"]_vars

\* The messages of the master's log that are durable there, and those that a slave has reported.
Durable == {log["master"][i] : i \in 1..flushed["master"]}
Reported == {log["master"][i] : i \in {i \in 1..Len(log["master"]) : i <= reported}}

\* A status other than SEND_OK states which condition was not met.
StatusHonest ==
    [][UNCHANGED answer \/ \A m \in Messages :
        answer'[m] # answer[m] =>
            /\ answer'[m] = "FLUSH_DISK_TIMEOUT" => flush = "SYNC_FLUSH" /\ m \notin Durable
            /\ answer'[m] = "FLUSH_SLAVE_TIMEOUT" => replication = "SYNC_MASTER" /\ m \notin Reported
            /\ answer'[m] = "SLAVE_NOT_AVAILABLE" => replication = "SYNC_MASTER" /\ up["slave"] # "running"]_vars

\* Logs grow and are synced only where a broker runs. The slave's log grows only while the master runs too.
GrowsWhileRunning ==
    [][UNCHANGED <<log, flushed>> \/ \A n \in Nodes :
        /\ Len(log'[n]) > Len(log[n]) => up["master"] = "running" /\ up[n] = "running"
        /\ flushed'[n] > flushed[n] => up'[n] = "running"]_vars

\* A report goes from a running slave to a running master. It is lost only with the master's memory.
ReportedWhileRunning ==
    [][reported' # reported =>
        IF reported' < reported THEN up'["master"] # "running"
        ELSE reported' = Len(log["slave"]) /\ \A n \in Nodes : up[n] = "running"]_vars

\* A node that is gone never returns, and no further fault affects it.
GoneForGood ==
    [][UNCHANGED <<up, struck>> \/ \A n \in Nodes :
        up[n] = "gone" => up'[n] = "gone" /\ (struck' # struck => struck'[Len(struck')].node # n)]_vars

Occurs(n, fault) == Len(struck') > Len(struck) /\ struck'[Len(struck')] = [fault |-> fault, node |-> n]

\* A fault removes from its node's files only what its kind permits, and changes nothing on the other node.
FaultEffects ==
    [][UNCHANGED <<up, struck>> \/ \A n \in Nodes :
        /\ up[n] = "running" /\ up'[n] # "running" => Len(struck') = Len(struck) + 1
        /\ Occurs(n, "clean") =>
            /\ up[n] = "running" /\ flushed[n] = Len(log[n]) /\ log'[n] = log[n]
            /\ n = "master" => \A m \in Messages : answer[m] # "waiting"
        /\ Occurs(n, "process") => up[n] = "running" /\ log'[n] = log[n]
        /\ Occurs(n, "os") => Len(log'[n]) >= flushed[n]
        /\ Occurs(n, "power") => Len(log'[n]) = flushed[n]
        /\ Occurs(n, "disk") => log'[n] = <<>>
        /\ Occurs(n, "machine") => log'[n] = <<>> /\ up'[n] = "gone"
        /\ (\E fault \in Faults : Occurs(n, fault)) =>
            /\ up'[n] # "running"
            /\ \A other \in Nodes \ {n} : UNCHANGED <<up[other], log[other], flushed[other]>>]_vars

\* A broker that restarts has lost nothing while it was down, and the log that it found is durable.
RecoveryKeeps ==
    [][UNCHANGED up \/ \A n \in Nodes : up[n] # "running" /\ up'[n] = "running" => log'[n] = log[n] /\ flushed'[n] = Len(log[n])]_vars

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive.
NeverStuck ==
    /\ \A m \in Messages :
        /\ answer[m] = "unsent" => ENABLED <<Send(m)>>_answer
        /\ answer[m] = "broken" =>
            /\ ENABLED <<Retry(m)>>_answer
            /\ producer = "async" => ENABLED (Produce /\ answer'[m] = "error")
        /\ answer[m] = "sent" => ENABLED (Serve /\ answer'[m] # "sent")
        /\ answer[m] = "waiting" =>
            /\ (flush = "SYNC_FLUSH" => m \in Durable) /\ (replication = "SYNC_MASTER" => m \in Reported) =>
                ENABLED <<AnswerOk(m)>>_answer
            /\ flush = "SYNC_FLUSH" /\ m \notin Durable => ENABLED <<AnswerDiskTimeout(m)>>_answer
            /\ replication = "SYNC_MASTER" /\ m \notin Reported => ENABLED <<AnswerSlaveTimeout(m)>>_answer
    /\ \A n \in Nodes :
        /\ up[n] = "running" =>
            /\ flushed[n] < Len(log[n]) => ENABLED <<FlushLog(n)>>_flushed
            /\ ENABLED ProcessCrash(n)
            /\ flushed[n] = Len(log[n]) /\ (n = "slave" \/ \A m \in Messages : answer[m] # "waiting") =>
                ENABLED CleanStop(n)
        /\ up[n] = "down" => ENABLED <<Restart(n)>>_up
        /\ up[n] # "gone" =>
            /\ \A kept \in flushed[n]..Len(log[n]) : ENABLED OsCrash(n, kept)
            /\ ENABLED PowerLoss(n) /\ ENABLED DiskLost(n) /\ ENABLED MachineLost(n)
    /\ (\A n \in Nodes : up[n] = "running") =>
        /\ Len(log["slave"]) < Len(log["master"]) => ENABLED <<Transfer>>_log
        /\ Len(log["slave"]) > reported => ENABLED <<Report>>_reported

=============================================================================
