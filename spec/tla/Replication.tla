----------------------------- MODULE Replication -----------------------------
(***************************************************************************)
(* How a master streams its log to a slave. The slave reports the length   *)
(* of its log, and the master sends the following records. The slave's     *)
(* reports allow waiting sends to be answered. Processes, machines and     *)
(* connections fail. The slave serves reads, with or without its master.   *)
(*                                                                         *)
(* Two rules are ours. First, a slave's first report is the start of its   *)
(* last record. The master sends that record again and the slave compares  *)
(* it, so a slave with records that its master lacks is detected and       *)
(* stops. Second, the first report requests a position and acknowledges    *)
(* nothing. Released brokers compare only lengths (ReplicationShipped).    *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - Bytes: a position counts whole records, and all records have the     *)
(*    same size, so logs with different content look as similar as         *)
(*    possible.                                                            *)
(*  - Queues: there is one, so the queue is the log; Flush models consume  *)
(*    queues, checkpoints and torn records.                                *)
(*  - Slaves: there is one; with several, the master uses the maximum.     *)
(*  - TCP: within a connection, frames may be repeated and overtake each   *)
(*    other, which is more than TCP allows; as with TCP, a frame does not  *)
(*    outlive its receiver's end of the connection; frames are lost only   *)
(*    when the connection is cut, and then all frames in flight are lost.  *)
(*  - Batches: a frame holds one record; a frame with many records is      *)
(*    equivalent to many frames that arrive together.                      *)
(*  - Heartbeats: an end whose other end is gone closes some time later.   *)
(*  - Reports: the slave acknowledges in the step in which it appends.     *)
(*  - Recovery: recovery is one step, and the remaining log is durable     *)
(*    afterwards.                                                          *)
(*  - Offset files: consumer offsets are written at once (Flush models     *)
(*    late writes), and a correction is written to both brokers.           *)
(*  - Consumers: one, which survives; Group models repeated reads by a new *)
(*    one.                                                                 *)
(*  - Producers: a message is sent once; Delivery models retries.          *)
(*  - Strangers: a peer without the shared secret can only try to           *)
(*    acknowledge; what it may read is not modelled.                       *)
(*  - Operators: no operator promotes a slave to master or repairs a slave *)
(*    that stopped.                                                        *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Messages,        \* the messages that producers may send, strings
    FlushModes,      \* the modes to explore, a subset of {"SYNC_FLUSH", "ASYNC_FLUSH"}
    Roles,           \* the roles of the master to explore, a subset of {"SYNC_MASTER", "ASYNC_MASTER"}
    FallBehindMax    \* a slave that is this many records behind is not usable (haSlaveFallbehindMax)

ASSUME /\ FlushModes \subseteq {"SYNC_FLUSH", "ASYNC_FLUSH"} /\ FlushModes # {}
       /\ Roles \subseteq {"SYNC_MASTER", "ASYNC_MASTER"} /\ Roles # {}
       /\ FallBehindMax \in Nat

Nodes == {"master", "slave"}

-----------------------------------------------------------------------------
(* Rules that are functions of their arguments only *)

Prefix(sequence, length) == SubSeq(sequence, 1, length)

IsPrefix(shorter, longer) ==
    /\ Len(shorter) <= Len(longer)
    /\ shorter = Prefix(longer, Len(shorter))

Max(a, b) == IF a < b THEN b ELSE a

Longer(a, b) == IF IsPrefix(a, b) THEN b ELSE a

\* The status that the producer receives: the replica's status overrides the flush's.
PutStatus(flush, replica) ==
    CASE replica # "PUT_OK" -> replica
      [] flush # "PUT_OK" -> flush
      [] OTHER -> "SEND_OK"

\* The status of a request. A request that was given up remains given up, even if its condition is reached
\* later.
RequestStatus(request, reached) ==
    CASE request # "waiting" -> request
      [] reached -> "PUT_OK"
      [] OTHER -> "waiting"

\* Can a send that ends at `end` wait for the slave?
SlaveUsable(connected, end, acked) == connected /\ end - acked < FallBehindMax

\* The slave's position as the master knows it, after an acknowledgement.
AckedPosition(acked, reported, end) == IF reported <= end THEN Max(acked, reported) ELSE acked

\* The first report of a slave whose log has this length.
FirstReport(length) == Max(length - 1, 0)

\* The slave's consumer offset after it receives the master's. A larger offset of the slave was committed to
\* the slave and is not known to the master yet. In this model no operator resets a group at the master only.
MergedOffset(own, masters) == Max(own, masters)

-----------------------------------------------------------------------------
(* Frames *)

Report(position) == [kind |-> "report", source |-> "slave", target |-> "master", position |-> position]

Ack(position) == [kind |-> "ack", source |-> "slave", target |-> "master", position |-> position]

\* The record that follows `position` in the master's log.
Transfer(position, message) ==
    [kind |-> "transfer", source |-> "master", target |-> "slave", position |-> position, message |-> message]

Frames ==
    [kind : {"report", "ack"}, source : {"slave"}, target : {"master"}, position : Nat]
        \cup [kind : {"transfer"}, source : {"master"}, target : {"slave"}, position : Nat, message : Messages]

-----------------------------------------------------------------------------
(* State *)

VARIABLE flushMode   \* the master's flushDiskType; never changes
FlushModeOK == flushMode \in FlushModes

VARIABLE role        \* the master's brokerRole; never changes
RoleOK == role \in Roles

VARIABLE phase       \* the state of each process; "gone": the machine is lost with its disk
PhaseOK == phase \in [Nodes -> {"up", "down", "gone"}]

VARIABLE log         \* by node, as a reader of its files sees it: page cache over disk
LogOK == log \in [Nodes -> Seq(Messages)]

VARIABLE flushed     \* by node: the number of durable records
FlushedOK == \A n \in Nodes : flushed[n] \in 0..Len(log[n])

VARIABLE connected   \* by node: its end of the connection is open
ConnectedOK == connected \in [Nodes -> BOOLEAN]

VARIABLE intact      \* the connection delivers frames
IntactOK == intact \in BOOLEAN /\ (intact => \A n \in Nodes : connected[n])

VARIABLE network     \* frames that were sent and may arrive, once or repeatedly
NetworkOK == \A frame \in network : frame \in Frames /\ connected[frame.target]

NotRequested == -1
VARIABLE sent        \* master's memory: the position up to which it has sent on this connection
SentOK == sent \in Nat \cup {NotRequested}

VARIABLE acked       \* master's memory: the highest position that was acknowledged (push2SlaveMaxOffset)
AckedOK == acked \in 0..Len(log["master"])

VARIABLE request     \* master's memory: the parts of a waiting send that were given up
Requests == [flush : {"waiting", "FLUSH_DISK_TIMEOUT"}, replica : {"waiting", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE"}]
RequestOK == request \in [Messages -> Requests]

VARIABLE verified    \* slave's memory: its log was compared with the master's on this connection and agrees
VerifiedOK == verified \in BOOLEAN /\ (verified => connected["slave"])

VARIABLE refused     \* slave's memory: it has records that its master lacks, and it no longer follows
RefusedOK == refused \in BOOLEAN

VARIABLE committed   \* by node: the consumer offset it stores
CommittedOK == committed \in [Nodes -> Nat]

VARIABLE answer      \* the status of each message, as its producer knows it
Statuses == {"SEND_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE"}
Answers == {"unsent", "waiting", "unknown"} \cup Statuses
AnswerOK == answer \in [Messages -> Answers]

VARIABLE seen        \* the messages delivered to the consumer; the length is the next offset to pull
SeenOK == seen \in Seq(Messages)

VARIABLE held        \* history: messages that have been in the slave's log
HeldOK == held \subseteq Messages

VARIABLE forked      \* history: a master that lost its tail served while its slave still had that tail
ForkedOK == forked \in BOOLEAN

VARIABLE recalled    \* history: a fault removed messages that the consumer had received
RecalledOK == recalled \in BOOLEAN

VARIABLE faults      \* history: the number of process crashes, of system crashes of each node, of cut connections, and of
                     \* acknowledgements by strangers
FaultsOK == faults \in [process : Nat, master : Nat, slave : Nat, cuts : Nat, strangers : Nat]

modes == <<flushMode, role>>
files == <<log, flushed, committed>>
connection == <<connected, intact, network>>
masterMemory == <<sent, acked, request>>
slaveMemory == <<verified, refused>>
clients == <<answer, seen>>
history == <<held, forked, recalled, faults>>
vars == <<modes, phase, files, connection, masterMemory, slaveMemory, clients, history>>

TypeOK ==
    /\ FlushModeOK /\ RoleOK /\ PhaseOK /\ LogOK /\ FlushedOK /\ ConnectedOK /\ IntactOK /\ NetworkOK /\ SentOK /\ AckedOK
    /\ RequestOK /\ VerifiedOK /\ RefusedOK /\ CommittedOK /\ AnswerOK /\ SeenOK /\ HeldOK /\ ForkedOK /\ RecalledOK /\ FaultsOK

Waits == [flush |-> "waiting", replica |-> "waiting"]

Init ==
    /\ flushMode \in FlushModes /\ role \in Roles
    /\ phase = [n \in Nodes |-> "up"]
    /\ log = [n \in Nodes |-> <<>>] /\ flushed = [n \in Nodes |-> 0]
    /\ committed = [n \in Nodes |-> 0]
    /\ connected = [n \in Nodes |-> FALSE] /\ intact = FALSE /\ network = {}
    /\ sent = NotRequested /\ acked = 0 /\ request = [m \in Messages |-> Waits]
    /\ verified = FALSE /\ refused = FALSE
    /\ answer = [m \in Messages |-> "unsent"]
    /\ seen = <<>>
    /\ held = {} /\ forked = FALSE /\ recalled = FALSE
    /\ faults = [process |-> 0, master |-> 0, slave |-> 0, cuts |-> 0, strangers |-> 0]

-----------------------------------------------------------------------------
(* A send, in the order of its steps *)

Position(m) == CHOOSE i \in 1..Len(log["master"]) : log["master"][i] = m

InLog(m, records) == \E i \in 1..Len(records) : records[i] = m

\* The append also creates the request for a replica. Without a usable slave the request fails at once.
NewRequest ==
    IF role = "SYNC_MASTER" /\ ~SlaveUsable(connected["master"], Len(log["master"]) + 1, acked)
    THEN [Waits EXCEPT !.replica = "SLAVE_NOT_AVAILABLE"]
    ELSE Waits

AppendRecord(m) ==
    /\ phase["master"] = "up"
    /\ answer[m] = "unsent"
    /\ log' = [log EXCEPT !["master"] = Append(@, m)]
    /\ request' = [request EXCEPT ![m] = NewRequest]
    /\ answer' = [answer EXCEPT ![m] = "waiting"]
    /\ UNCHANGED <<modes, phase, flushed, committed, connection, sent, acked, slaveMemory, seen, history>>

\* An fsync returns. A record that is appended during an fsync is modelled as appended after it, which is
\* equivalent.
FlushLog(n) ==
    /\ phase[n] = "up"
    /\ flushed[n] < Len(log[n])
    /\ flushed' = [flushed EXCEPT ![n] = Len(log[n])]
    /\ UNCHANGED <<modes, phase, log, committed, connection, masterMemory, slaveMemory, clients, history>>

FlushReached(m) == flushMode = "SYNC_FLUSH" => Position(m) <= flushed["master"]

ReplicaReached(m) == role = "SYNC_MASTER" => Position(m) <= acked

FlushStatus(m) == RequestStatus(request[m].flush, FlushReached(m))

ReplicaStatus(m) == RequestStatus(request[m].replica, ReplicaReached(m))

FlushTimeout(m) ==
    /\ phase["master"] = "up"
    /\ answer[m] = "waiting"
    /\ FlushStatus(m) = "waiting"
    /\ request' = [request EXCEPT ![m].flush = "FLUSH_DISK_TIMEOUT"]
    /\ UNCHANGED <<modes, phase, files, connection, sent, acked, slaveMemory, clients, history>>

SlaveTimeout(m) ==
    /\ phase["master"] = "up"
    /\ answer[m] = "waiting"
    /\ ReplicaStatus(m) = "waiting"
    /\ request' = [request EXCEPT ![m].replica = "FLUSH_SLAVE_TIMEOUT"]
    /\ UNCHANGED <<modes, phase, files, connection, sent, acked, slaveMemory, clients, history>>

\* The master waits for flush and replica at the same time. When both have a result, it answers the producer.
AnswerSend(m) ==
    /\ phase["master"] = "up"
    /\ answer[m] = "waiting"
    /\ FlushStatus(m) # "waiting" /\ ReplicaStatus(m) # "waiting"
    /\ answer' = [answer EXCEPT ![m] = PutStatus(FlushStatus(m), ReplicaStatus(m))]
    /\ request' = [request EXCEPT ![m] = Waits]
    /\ UNCHANGED <<modes, phase, files, connection, sent, acked, slaveMemory, seen, history>>

-----------------------------------------------------------------------------
(* A connection *)

FramesTo(n) == {frame \in network : frame.target = n}

\* The first frame of a connection is the slave's first report. Any older connection ends here.
Connect ==
    /\ \A n \in Nodes : phase[n] = "up"
    /\ ~connected["slave"] /\ ~refused
    /\ connected' = [n \in Nodes |-> TRUE] /\ intact' = TRUE
    /\ network' = {Report(FirstReport(Len(log["slave"])))}
    /\ sent' = NotRequested
    /\ verified' = (log["slave"] = <<>>)
    /\ UNCHANGED <<modes, phase, files, acked, request, refused, clients, history>>

\* The master sends from the position that the slave requested. The report acknowledges nothing, because the
\* logs were not compared yet.
AcceptReport(frame) ==
    /\ frame \in network
    /\ connected["master"] /\ sent = NotRequested
    /\ frame.kind = "report" /\ frame.position <= Len(log["master"])
    /\ sent' = frame.position
    /\ UNCHANGED <<modes, phase, files, connection, acked, request, slaveMemory, clients, history>>

Close(n) ==
    /\ connected' = [connected EXCEPT ![n] = FALSE] /\ intact' = FALSE
    /\ network' = network \ FramesTo(n)

\* The slave requests a position beyond the master's end, so it is ahead. The master closes the connection.
RefuseReport(frame) ==
    /\ frame \in network
    /\ connected["master"] /\ sent = NotRequested
    /\ frame.kind = "report" /\ frame.position > Len(log["master"])
    /\ Close("master")
    /\ UNCHANGED <<modes, phase, files, masterMemory, slaveMemory, clients, history>>

TransferRecord ==
    /\ intact /\ sent # NotRequested
    /\ sent < Len(log["master"])
    /\ network' = network \cup {Transfer(sent, log["master"][sent + 1])}
    /\ sent' = sent + 1
    /\ UNCHANGED <<modes, phase, files, connected, intact, acked, request, slaveMemory, clients, history>>

\* The frame contains the slave's last record, which the slave requested for comparison.
Compares(frame) == ~verified /\ frame.position = FirstReport(Len(log["slave"]))

Agrees(frame) == frame.message = log["slave"][Len(log["slave"])]

\* The frame starts at the end of the slave's log. A frame that starts at any other position is old.
Continues(frame) == verified /\ frame.position = Len(log["slave"])

\* These records arrived late. Does the master serve without them, or has it put other records at their
\* positions?
Forks(records) ==
    /\ ~intact
    /\ ~IsPrefix(records, log["master"])
    /\ phase["master"] = "up" \/ ~IsPrefix(log["master"], records)

ReceiveTransfer(frame) ==
    /\ frame \in network
    /\ frame.kind = "transfer" /\ connected["slave"]
    /\ Continues(frame) \/ (Compares(frame) /\ Agrees(frame))
    /\ log' = IF Continues(frame) THEN [log EXCEPT !["slave"] = Append(@, frame.message)] ELSE log
    /\ verified' = TRUE
    /\ network' = IF intact THEN network \cup {Ack(Len(log'["slave"]))} ELSE network
    /\ held' = held \cup {log'["slave"][i] : i \in 1..Len(log'["slave"])}
    /\ forked' = (forked \/ Forks(log'["slave"]))
    /\ UNCHANGED <<modes, phase, flushed, committed, connected, intact, masterMemory, refused, clients, recalled, faults>>

\* The slave's last record differs from the master's. The slave closes the connection and stops following.
RefuseTransfer(frame) ==
    /\ frame \in network
    /\ frame.kind = "transfer" /\ connected["slave"]
    /\ Compares(frame) /\ ~Agrees(frame)
    /\ Close("slave")
    /\ refused' = TRUE
    /\ UNCHANGED <<modes, phase, files, masterMemory, verified, clients, history>>

ReceiveAck(frame) ==
    /\ frame \in network
    /\ frame.kind = "ack" /\ connected["master"]
    /\ AckedPosition(acked, frame.position, Len(log["master"])) # acked
    /\ acked' = AckedPosition(acked, frame.position, Len(log["master"]))
    /\ UNCHANGED <<modes, phase, files, connection, sent, request, slaveMemory, clients, history>>

\* The connection is cut. Neither end knows it yet.
Cut ==
    /\ intact
    /\ intact' = FALSE /\ network' = {}
    /\ faults' = [faults EXCEPT !.cuts = @ + 1]
    /\ UNCHANGED <<modes, phase, files, connected, masterMemory, slaveMemory, clients, held, forked, recalled>>

\* A stranger connects to the port of slaves and acknowledges the master's records, which it does not store. It
\* cannot prove that it has the shared secret, so the master closes its connection and counts nothing.
StrangerAcknowledges ==
    /\ phase["master"] = "up"
    /\ log["master"] # <<>>
    /\ faults' = [faults EXCEPT !.strangers = @ + 1]
    /\ UNCHANGED <<modes, phase, files, connection, masterMemory, slaveMemory, clients, held, forked, recalled>>

\* No frame was received for haHousekeepingInterval.
Housekeeping(n) ==
    /\ connected[n] /\ ~intact
    /\ Close(n)
    /\ verified' = (verified /\ n # "slave")
    /\ UNCHANGED <<modes, phase, files, masterMemory, refused, clients, history>>

-----------------------------------------------------------------------------
(* The consumer *)

\* Under SYNC_FLUSH, the master shows no consumer a record that a crash could still remove (as released since
\* 5.3).
ReadLimit(n) == IF n = "master" /\ flushMode = "SYNC_FLUSH" THEN flushed[n] ELSE Len(log[n])

\* A pull, from either broker, returns the record at the consumer's next offset.
Deliver(n) ==
    /\ phase[n] = "up"
    /\ Len(seen) < ReadLimit(n)
    /\ seen' = Append(seen, log[n][Len(seen) + 1])
    /\ UNCHANGED <<modes, phase, files, connection, masterMemory, slaveMemory, answer, history>>

\* A pull beyond the master's end (PULL_OFFSET_MOVED): the consumer moves back to the end. A slave corrects no
\* consumer.
CorrectOffset ==
    /\ phase["master"] = "up"
    /\ Len(seen) > Len(log["master"])
    /\ seen' = Prefix(seen, Len(log["master"]))
    /\ committed' = [n \in Nodes |-> Len(log["master"])]
    /\ UNCHANGED <<modes, phase, log, flushed, connection, masterMemory, slaveMemory, answer, history>>

\* The consumer commits to the broker that it reads from.
CommitOffset(n) ==
    /\ phase[n] = "up"
    /\ committed[n] < Len(seen)
    /\ committed' = [committed EXCEPT ![n] = Len(seen)]
    /\ UNCHANGED <<modes, phase, log, flushed, connection, masterMemory, slaveMemory, clients, history>>

\* Every 10 s the slave requests the master's offsets.
SyncOffsets ==
    /\ \A n \in Nodes : phase[n] = "up"
    /\ committed' = [committed EXCEPT !["slave"] = MergedOffset(@, committed["master"])]
    /\ committed' # committed
    /\ UNCHANGED <<modes, phase, log, flushed, connection, masterMemory, slaveMemory, clients, history>>

-----------------------------------------------------------------------------
(* Crashes and starts of a broker *)

\* The process has ended. Its memory is lost, its end of the connection is closed, and waiting producers get
\* no answer.
LoseMemory(n, next) ==
    /\ phase' = [phase EXCEPT ![n] = next]
    /\ Close(n)
    /\ IF n = "slave"
       THEN verified' = FALSE /\ refused' = FALSE /\ UNCHANGED <<masterMemory, answer>>
       ELSE /\ sent' = NotRequested /\ acked' = 0 /\ request' = [m \in Messages |-> Waits]
            /\ answer' = [m \in Messages |-> IF answer[m] = "waiting" THEN "unknown" ELSE answer[m]]
            /\ UNCHANGED slaveMemory
    /\ UNCHANGED <<modes, seen, held, forked>>

\* SIGKILL: the page cache survives.
ProcessCrash(n) ==
    /\ phase[n] = "up"
    /\ LoseMemory(n, "down")
    /\ faults' = [faults EXCEPT !.process = @ + 1]
    /\ UNCHANGED <<files, recalled>>

\* The log that the two brokers hold together, as long as their logs agree.
Kept == Longer(log["master"], log["slave"])

Recall == recalled' = (recalled \/ Len(seen) > Len(Kept'))

\* The operating system crashes or the power fails, at any time. Any part of the non-durable records may
\* remain.
SystemCrash(n, length) ==
    /\ phase[n] # "gone"
    /\ length \in flushed[n]..Len(log[n])
    /\ LoseMemory(n, "down")
    /\ log' = [log EXCEPT ![n] = Prefix(@, length)]
    /\ Recall
    /\ faults' = [faults EXCEPT ![n] = @ + 1]
    /\ UNCHANGED <<flushed, committed>>

\* The master's machine is destroyed permanently, with its disk.
MachineLoss ==
    /\ phase["master"] # "gone"
    /\ LoseMemory("master", "gone")
    /\ log' = [log EXCEPT !["master"] = <<>>] /\ flushed' = [flushed EXCEPT !["master"] = 0]
    /\ committed' = [committed EXCEPT !["master"] = 0]
    /\ Recall
    /\ UNCHANGED faults

\* Starts the process again. A master with fewer records than its slave differs from the master that the slave
\* followed.
Start(n) ==
    /\ phase[n] = "down"
    /\ phase' = [phase EXCEPT ![n] = "up"]
    /\ flushed' = [flushed EXCEPT ![n] = Len(log[n])]
    /\ forked' = (forked \/ (n = "master" /\ ~IsPrefix(log["slave"], log["master"])))
    /\ UNCHANGED <<modes, log, committed, connection, masterMemory, slaveMemory, clients, held, recalled, faults>>

-----------------------------------------------------------------------------
(* Next and Spec *)

Send == \E m \in Messages : AppendRecord(m)

Decide == \E m \in Messages : FlushTimeout(m) \/ SlaveTimeout(m) \/ AnswerSend(m)

Flush == \E n \in Nodes : FlushLog(n)

Receive ==
    \E frame \in network :
        AcceptReport(frame) \/ RefuseReport(frame) \/ ReceiveTransfer(frame) \/ RefuseTransfer(frame) \/ ReceiveAck(frame)

Replicate ==
    \/ Connect \/ Receive \/ TransferRecord
    \/ \E n \in Nodes : Housekeeping(n)

Consume == CorrectOffset \/ \E n \in Nodes : Deliver(n)

Commit == SyncOffsets \/ \E n \in Nodes : CommitOffset(n)

Restart == \E n \in Nodes : Start(n)

Fault ==
    \/ \E n \in Nodes : ProcessCrash(n) \/ \E length \in 0..Len(log[n]) : SystemCrash(n, length)
    \/ MachineLoss \/ Cut \/ StrangerAcknowledges

Next == Send \/ Decide \/ Flush \/ Replicate \/ Consume \/ Commit \/ Restart \/ Fault

\* A frame that is received changes one of these.
received == <<sent, acked, connected, verified, log>>

\* The master flushes, gives up in time and answers. Frames arrive. The consumer continues to pull. The
\* operator restarts brokers. Each subscript is what the action changes in every step; TLC compares `vars` much slower.
FlushFairness == WF_flushed(FlushLog("master"))
TimeoutFairness == \A m \in Messages : WF_request(SlaveTimeout(m))
AnswerFairness == \A m \in Messages : WF_answer(AnswerSend(m))
ConnectFairness == WF_connected(Connect) /\ \A n \in Nodes : WF_connected(Housekeeping(n))
TransferFairness == WF_sent(TransferRecord)
ReceiveFairness == WF_received(Receive)
DeliverFairness == \A n \in Nodes : WF_seen(Deliver(n))
StartFairness == \A n \in Nodes : WF_phase(Start(n))

Fairness ==
    /\ FlushFairness /\ TimeoutFairness /\ AnswerFairness /\ ConnectFairness /\ TransferFairness /\ ReceiveFairness
    /\ DeliverFairness /\ StartFairness

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

Answered(status) == {m \in Messages : answer[m] = status}

\* The master lost some of its records, or may have lost some.
MasterLost == phase["master"] = "gone" \/ (flushMode = "ASYNC_FLUSH" /\ faults.master > 0)

\* The faults that the configuration tolerates. After a loss at the master, the slave must have been waited
\* for and must have lost nothing itself.
Covered == MasterLost => role = "SYNC_MASTER" /\ faults.slave = 0 /\ ~forked

\* A consumer may see a record that is not safe yet: one in the master's page cache, not yet on the slave, or
\* only on the slave.
MayRecall == phase["master"] = "gone" \/ flushMode = "ASYNC_FLUSH" \/ faults.slave > 0

\* The guarantee holds, and all messages that the consumer saw still exist.
Promised == Covered /\ ~forked /\ ~(MayRecall /\ recalled)

\* REPL-1: the message reached the slave, and only a crash of the slave's own system can have removed it since
SyncAckedOnSlave ==
    role = "SYNC_MASTER" =>
        \A m \in Answered("SEND_OK") : InLog(m, log["slave"]) \/ (faults.slave > 0 /\ m \in held)

\* The slave has compared its log with its master's and follows.
Following == intact /\ verified

\* TRUST-1: what a stranger acknowledges changes nothing that the master knows, and answers no send
StrangerNotCounted ==
    [][faults'.strangers > faults.strangers =>
        phase["master"] = "up" /\ log["master"] # <<>> /\ UNCHANGED <<masterMemory, answer, log>>]_vars

\* REPL-2: the slave's log is a prefix of its master's, except after a restart of a master that lost its tail;
\* then no slave follows
SlaveIsPrefix ==
    \/ IsPrefix(log["slave"], log["master"])
    \/ phase["master"] # "up" /\ IsPrefix(log["master"], log["slave"])
    \/ forked /\ ~Following

\* REPL-3: a flush or a replication times out only while the send waits for it; an answer confirms everything that
\* was requested, or its status names what was not reached. UNCHANGED comes first, here and below, only because it
\* takes TLC less time.
StatusHonest ==
    [][UNCHANGED <<request, answer>> \/ \A m \in Messages :
        LET was == request[m]
            now == request'[m]
            usable == connected["master"] /\ Len(log["master"]) + 1 - acked < FallBehindMax
            durable == Position(m) <= flushed["master"]
            replicated == m \in held /\ Position(m) <= acked
        IN  /\ answer[m] = "unsent" /\ answer'[m] # "unsent" =>
                (now.replica = "SLAVE_NOT_AVAILABLE" <=> role = "SYNC_MASTER" /\ ~usable)
            /\ was.flush = "waiting" /\ now.flush # "waiting" => flushMode = "SYNC_FLUSH" /\ ~durable
            /\ answer[m] = "waiting" /\ was.replica = "waiting" /\ now.replica # "waiting" =>
                role = "SYNC_MASTER" /\ Position(m) > acked
            /\ answer[m] = "waiting" /\ answer'[m] # "waiting" =>
                \/ answer'[m] = was.replica
                \/ answer'[m] = was.flush /\ was.replica = "waiting" /\ (role = "SYNC_MASTER" => replicated)
                \/ /\ answer'[m] = "SEND_OK" /\ was = Waits
                   /\ flushMode = "SYNC_FLUSH" => durable
                   /\ role = "SYNC_MASTER" => replicated
                \/ answer'[m] = "unknown" /\ phase'["master"] # "up"
      ]_vars

\* REPL-4: a consumer can read the next record from a slave that has it, and the slave keeps every record it
\* ever had
ReadableWithoutMaster ==
    phase["master"] # "up" /\ phase["slave"] = "up" =>
        /\ Len(seen) < Len(log["slave"]) => ENABLED Deliver("slave")
        /\ faults.slave = 0 => \A m \in held : InLog(m, log["slave"])

\* FLUSH-1
SyncAckedDurable ==
    flushMode = "SYNC_FLUSH" /\ phase["master"] # "gone" =>
        \A m \in Answered("SEND_OK") : InLog(m, Prefix(log["master"], flushed["master"]))

\* DELIV-1: one of the two brokers has the message, and the consumer has not passed it
NoAckedLost ==
    \A m \in Answered("SEND_OK") :
        /\ Covered => InLog(m, log["master"]) \/ InLog(m, log["slave"])
        /\ Promised => \E i \in 1..Len(Kept) : Kept[i] = m /\ (i <= Len(seen) => seen[i] = m)

\* DELIV-2
NoPhantom == \A i \in 1..Len(seen) : seen[i] \in Messages /\ answer[seen[i]] # "unsent"

\* DELIV-4: the consumer sees the messages of the log, in the log's order
QueueOrder == Promised => IsPrefix(seen, Kept)

\* DELIV-5: offsets decrease only by a correction, of which the consumer is informed, or by the loss of a machine
OffsetMonotone ==
    [][UNCHANGED committed \/ \A n \in Nodes : committed'[n] >= committed[n] \/ CorrectOffset \/ phase'[n] = "gone"]_vars

-----------------------------------------------------------------------------
(* Consistency: invariants on states and constraints on steps. They make a wrong step fail where it is made. *)

\* A process that does not run has no memory and no connection, and no producer waits for it. A lost machine
\* has no files.
MemoryLost ==
    /\ \A n \in Nodes : phase[n] # "up" => ~connected[n]
    /\ phase["master"] # "up" => sent < 0 /\ acked = 0 /\ \A m \in Messages : answer[m] # "waiting"
    /\ phase["slave"] # "up" => ~refused
    /\ phase["master"] = "gone" => log["master"] = <<>> /\ committed["master"] = 0

\* Only a waiting send has parts that were given up.
GivenUpWhileWaiting == \A m \in Messages : request[m] # Waits => answer[m] = "waiting"

\* The frames match the logs of both ends: the master's records from the requested position on, and the
\* slave's positions.
FramesTrue ==
    intact =>
        /\ \E report \in network :
            /\ report.kind = "report"
            /\ verified \/ report.position + 1 = Len(log["slave"])
            /\ \A i \in (report.position + 1)..sent : Transfer(i - 1, log["master"][i]) \in network
            /\ \A frame \in network :
                CASE frame.kind = "transfer" -> report.position <= frame.position /\ frame.position < sent
                  [] frame.kind = "ack" -> verified /\ frame.position <= Len(log["slave"])
                  [] OTHER -> frame = report /\ frame.position <= Len(log["slave"])
        /\ verified /\ log["slave"] # <<>> => Ack(Len(log["slave"])) \in network

\* `held` contains the slave's log. `recalled` is TRUE if neither broker has all messages that the consumer
\* saw.
HistoryComplete ==
    /\ \A i \in 1..Len(log["slave"]) : log["slave"][i] \in held
    /\ (\A n \in Nodes : Len(log[n]) < Len(seen)) => recalled

\* A running master answers once, while the producer waits. A part that was given up remains given up until
\* then.
AnsweredOnce ==
    [][UNCHANGED <<request, answer>> \/ \A m \in Messages :
        /\ answer'[m] # answer[m] => answer[m] = IF answer'[m] = "waiting" THEN "unsent" ELSE "waiting"
        /\ answer[m] = "waiting" /\ answer'[m] = "waiting" =>
            \A part \in DOMAIN Waits : request'[m][part] = request[m][part] \/ request[m][part] = "waiting"]_vars

\* A log grows by one record, sent to the master or in flight to the slave. A log loses only its non-durable
\* tail.
LogsGrow ==
    [][UNCHANGED log \/ \A n \in Nodes : log'[n] # log[n] =>
        IF Len(log'[n]) > Len(log[n])
        THEN LET m == log'[n][Len(log'[n])] IN
            /\ log'[n] = Append(log[n], m)
            /\ IF n = "master"
               THEN answer[m] = "unsent" /\ answer'[m] = "waiting"
               ELSE verified /\ \E frame \in network : frame = Transfer(Len(log[n]), m)
        ELSE /\ log'[n] = SubSeq(log[n], 1, Len(log'[n]))
             /\ phase'[n] = "gone" \/ (faults'[n] > faults[n] /\ Len(log'[n]) >= flushed[n])]_vars

\* A process flushes its whole log. The log that it finds at its start is durable.
FlushedToTheEnd ==
    [][UNCHANGED <<phase, flushed>> \/ \A n \in Nodes :
        flushed'[n] # flushed[n] \/ (phase[n] = "down" /\ phase'[n] = "up") =>
            phase'[n] = "gone" \/ (phase'[n] = "up" /\ flushed'[n] = Len(log[n]))]_vars

\* A connection opens at both ends at once and is independent of the previous one.
OpensFresh ==
    [][(\E n \in Nodes : connected'[n] /\ ~connected[n]) \/ (intact' /\ ~intact) =>
        /\ \A n \in Nodes : phase[n] = "up" /\ connected'[n]
        /\ intact' /\ ~connected["slave"] /\ ~refused
        /\ sent' < 0 /\ Cardinality(network') = 1]_vars

\* An end closes when its process ends, when the other end is gone, or when the logs turn out to differ.
ClosesForAReason ==
    [][UNCHANGED connected \/ \A n \in Nodes : connected[n] /\ ~connected'[n] =>
        \/ phase'[n] # "up" \/ ~intact
        \/ n = "slave" /\ refused'
        \/ n = "master" /\ sent < 0 /\ \E report \in network : report.position > Len(log["master"])]_vars

\* Frames remain in flight until their receiver's end closes or the connection is cut. On a cut connection no
\* frame is sent.
FramesStay ==
    [][~(intact' /\ ~intact) =>
        CASE connected' # connected -> network' = {frame \in network : connected'[frame.target]}
          [] intact' # intact -> network' = {} /\ faults'.cuts > faults.cuts
          [] OTHER -> network \subseteq network' /\ (intact \/ network' = network)]_vars

\* The master sends in order from the requested position. Its knowledge of the slave comes from an
\* acknowledgement.
SentInOrder ==
    [][/\ sent' # sent /\ sent' >= 0 =>
            \/ sent < 0 /\ \E report \in network : report.kind = "report" /\ report.position = sent'
            \/ sent >= 0 /\ intact /\ sent' = sent + 1
       /\ sent' # sent /\ sent' < 0 => phase'["master"] # "up" \/ (intact' /\ ~intact)
       /\ acked' > acked => Ack(acked') \in network
       /\ acked' < acked => phase'["master"] # "up"]_vars

\* The master's record at the last position of the slave's log has arrived, and it equals the slave's own
\* record or not.
Compared(agrees) ==
    \E frame \in network :
        /\ frame.kind = "transfer" /\ frame.position + 1 = Len(log["slave"])
        /\ (frame.message = log["slave"][Len(log["slave"])]) = agrees

\* The slave follows a master that has the slave's last record, or any master if the slave's log is empty. It
\* refuses other masters.
ComparedFirst ==
    [][/\ verified' /\ ~verified => IF connected["slave"] THEN Compared(TRUE) ELSE log["slave"] = <<>>
       /\ verified /\ ~verified' => ~connected'["slave"]
       /\ refused' /\ ~refused => ~verified /\ Compared(FALSE) /\ ~connected'["slave"]
       /\ refused /\ ~refused' => phase'["slave"] # "up"]_vars

\* The consumer receives the next record of a running broker. From a master under SYNC_FLUSH it receives only
\* durable records.
ShownInOrder ==
    [][Len(seen') > Len(seen) =>
        \E n \in Nodes :
            /\ phase[n] = "up" /\ Len(seen) < Len(log[n])
            /\ seen' = Append(seen, log[n][Len(seen) + 1])
            /\ n = "slave" \/ flushMode = "ASYNC_FLUSH" \/ Len(seen) < flushed[n]]_vars

\* Only a consumer beyond the master's end is moved back. It moves to that end, and its offsets move with it.
CorrectedToTheEnd ==
    [][seen' # seen /\ Len(seen') <= Len(seen) =>
        /\ phase["master"] = "up"
        /\ seen' = SubSeq(seen, 1, Len(log["master"])) /\ \A n \in Nodes : committed'[n] = Len(seen')]_vars

\* A broker stores the consumer's position, or the slave stores the offset that it received from the master.
CommittedDelivered ==
    [][seen' = seen =>
        \A n \in Nodes : committed'[n] > committed[n] =>
            /\ phase[n] = "up"
            /\ \/ committed'[n] = Len(seen)
               \/ n = "slave" /\ phase["master"] = "up" /\ committed'[n] = committed["master"]]_vars

\* A fault counts once. A process crash changes no file.
FaultsCounted ==
    [][faults' # faults =>
        /\ \E fault \in DOMAIN faults : faults' = [faults EXCEPT ![fault] = @ + 1]
        /\ faults'.process > faults.process =>
            UNCHANGED files /\ \E n \in Nodes : phase[n] = "up" /\ phase'[n] = "down"
        /\ \A n \in Nodes : faults'[n] > faults[n] => phase[n] # "gone" /\ phase'[n] = "down"
        /\ faults'.cuts > faults.cuts => intact /\ ~intact']_vars

\* A process ends only by a fault, and a fault ends one process. A lost machine never restarts.
EndsByAFault ==
    [][UNCHANGED phase \/ \A n \in Nodes : phase'[n] # phase[n] =>
        /\ \A other \in Nodes \ {n} : phase'[other] = phase[other]
        /\ phase[n] # "gone"
        /\ (phase'[n] = "down") = (faults' # faults)]_vars

\* The logs differ at a position that both have.
Apart == \E i \in 1..Len(log["slave"]) : i <= Len(log["master"]) /\ log["slave"][i] # log["master"][i]

\* The history variables only grow, and each change has its event: a record reached the slave, the logs
\* forked, or a fault removed a message that the consumer saw.
HistoryGrows ==
    [][/\ held \subseteq held' /\ \A m \in held' \ held : \E i \in 1..Len(log'["slave"]) : log'["slave"][i] = m
       /\ forked' # forked =>
            forked' /\ (Apart' \/ (phase'["master"] = "up" /\ Len(log'["slave"]) > Len(log'["master"])))
       /\ recalled' # recalled =>
            /\ recalled' /\ Len(seen) > Len(log'["master"])
            /\ Apart' \/ Len(seen) > Len(log'["slave"])]_vars

\* Only frames in flight can arrive.
NothingFromNowhere ==
    \A position \in 0..Cardinality(Messages) :
        \A frame \in ({Report(position), Ack(position)} \cup {Transfer(position, m) : m \in Messages}) \ network :
            /\ ~ENABLED AcceptReport(frame) /\ ~ENABLED RefuseReport(frame) /\ ~ENABLED ReceiveAck(frame)
            /\ ~ENABLED ReceiveTransfer(frame) /\ ~ENABLED RefuseTransfer(frame)

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive.
NeverStuck ==
    /\ phase["master"] = "up" =>
        /\ \A m \in Messages :
            LET among(n) == \E i \in 1..n : log["master"][i] = m
                durable == flushMode = "ASYNC_FLUSH" \/ among(flushed["master"])
                replicated == role = "ASYNC_MASTER" \/ among(acked)
            IN  /\ answer[m] = "unsent" => ENABLED <<AppendRecord(m)>>_log
                /\ answer[m] = "waiting" =>
                    /\ request[m].flush = "waiting" /\ ~durable =>
                        ENABLED <<FlushTimeout(m)>>_request
                    /\ request[m].replica = "waiting" /\ ~replicated =>
                        ENABLED <<SlaveTimeout(m)>>_request
                    /\ (durable \/ request[m].flush # "waiting") /\ (replicated \/ request[m].replica # "waiting") =>
                        ENABLED (Decide /\ answer'[m] # "waiting")
        /\ Len(seen) > Len(log["master"]) => ENABLED (Consume /\ Len(seen') < Len(seen))
    /\ \A n \in Nodes :
        /\ phase[n] = "up" =>
            /\ flushed[n] < Len(log[n]) => ENABLED <<FlushLog(n)>>_flushed
            /\ \A i \in 1..Len(log[n]) :
                i = Len(seen) + 1 /\ (n = "slave" \/ flushMode = "ASYNC_FLUSH" \/ i <= flushed[n]) =>
                    ENABLED <<Deliver(n)>>_seen
            /\ committed[n] < Len(seen) => ENABLED <<CommitOffset(n)>>_committed
            /\ ENABLED <<ProcessCrash(n)>>_phase
        /\ phase[n] = "down" => ENABLED <<Start(n)>>_phase
        /\ phase[n] # "gone" =>
            \A length \in flushed[n]..Len(log[n]) : ENABLED (SystemCrash(n, length) /\ Len(log'[n]) = length)
        /\ connected[n] /\ ~intact => ENABLED (Replicate /\ ~connected'[n])
    /\ phase["master"] # "gone" => ENABLED <<MachineLoss>>_phase
    /\ phase["master"] = "up" /\ log["master"] # <<>> => ENABLED <<StrangerAcknowledges>>_faults
    /\ intact =>
        /\ ENABLED <<Cut>>_intact
        /\ 0 <= sent /\ sent < Len(log["master"]) => ENABLED <<TransferRecord>>_sent
    /\ \A n \in Nodes : phase[n] = "up" =>
        \A other \in Nodes \ {n} : phase[other] = "up" =>
            /\ ~connected["slave"] /\ ~refused => ENABLED <<Connect>>_connected
            /\ committed["slave"] < committed["master"] => ENABLED <<SyncOffsets>>_committed
    /\ \A frame \in network :
        /\ frame.kind = "report" /\ sent < 0 =>
            IF frame.position <= Len(log["master"])
            THEN ENABLED (Receive /\ sent' = frame.position)
            ELSE ENABLED (Receive /\ ~connected'["master"])
        /\ frame.kind = "ack" /\ acked < frame.position /\ frame.position <= Len(log["master"]) =>
            ENABLED (Receive /\ acked' = frame.position)
        /\ frame.kind = "transfer" /\ verified /\ frame.position = Len(log["slave"]) =>
            ENABLED (Receive /\ log'["slave"] = Append(log["slave"], frame.message))
        /\ frame.kind = "transfer" /\ ~verified /\ frame.position + 1 = Len(log["slave"]) =>
            IF frame.message = log["slave"][Len(log["slave"])]
            THEN ENABLED (Receive /\ verified')
            ELSE ENABLED (Receive /\ refused')

-----------------------------------------------------------------------------
(* Liveness *)

\* FLUSH-7
SendAnswered == \A m \in Messages : answer[m] = "waiting" ~> answer[m] # "waiting"

\* REPL-5: the logs become equal, unless there is no master any more, or the master lost records that the slave has
SlaveCatchesUp ==
    log["slave"] # log["master"] ~> log["slave"] = log["master"] \/ forked \/ phase["master"] = "gone"

Delivered(m) == \E i \in 1..Len(seen) : seen[i] = m

\* DELIV-12
AckedDelivered == \A m \in Messages : answer[m] = "SEND_OK" /\ Promised ~> Delivered(m) \/ ~Promised

=============================================================================
