-------------------------------- MODULE Damage ---------------------------------
(***************************************************************************)
(* Bytes that were durable change: a bit is flipped, or the write of a     *)
(* block never reached the disk. The model contains one broker with the    *)
(* files of its store, its clients, and perhaps a slave that has a copy of *)
(* the log. The broker compares what it reads with all that the format has.*)
(* It repairs a queue entry from the log and a record from the slave.      *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - Crashes: a message is durable before its producer gets an answer, as *)
(*    under SYNC_FLUSH; Flush models what a crash removes.                 *)
(*  - Queues: there is one queue, so the n-th record of the log has the    *)
(*    n-th offset.                                                         *)
(*  - Checks: they find every damage here; the format has no checksum for  *)
(*    some fields of a record, and no model can give it one.               *)
(*  - Tables: there is one, with the topic; it was written once, and each  *)
(*    copy without the last write is an older table without the topic.     *)
(*  - Segments: each record is in a file of its own.                       *)
(*  - The slave: its own disk has no fault, and it copies sound records.   *)
(*  - Reports: the log of the broker is kept, so a place stays reported.   *)
(*  - Cuts: a start sees a lost record by its entry in the queue even if a *)
(*    second fault removed that entry.                                     *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Messages, \* the most messages that producers send
    Faults,   \* the kinds of faults that may occur
    HasPeer   \* whether there is a slave

ASSUME Messages \in Nat \ {0} /\ Faults \subseteq {"flip", "lost", "missing"} /\ HasPeer \in BOOLEAN

Positions == 1..Messages
Copies == {"main", "backup"}
Files == {"log", "queue", "checkpoint", "table"}
Nothing == 0 \* no message; as a queue entry: bytes that were never written

Prefix(sequence, length) == SubSeq(sequence, 1, length)
Max(a, b) == IF a > b THEN a ELSE b

-----------------------------------------------------------------------------
(* State *)

VARIABLE phase      \* "refused": the broker does not start, with an error
PhaseOK == phase \in {"running", "down", "refused"}

VARIABLE log        \* the records: the message that was written, and whether the bytes still are that record
Record == [message : Positions, is : {"good", "flipped", "blank"}]
LogOK == log \in Seq(Record) /\ Len(log) <= Messages

VARIABLE queue      \* the entry of each queue offset: the position of a record, if it is right its own
QueueOK == queue \in Seq(0..Messages + 1) /\ Len(queue) <= Messages

VARIABLE checkpoint \* how much of the log it counts as durable, and whether its own checksum is right
CheckpointOK == checkpoint \in [count : 0..Messages, sound : BOOLEAN]

VARIABLE table      \* the file of topics and its backup; "old" is sound, but lacks the last write
TableOK == table \in [Copies -> {"new", "old", "bad"}]

VARIABLE topic      \* memory: whether the broker knows the topic
TopicOK == topic \in BOOLEAN

VARIABLE peer       \* the log of the slave, by message
PeerOK == peer \in Seq(Positions)

VARIABLE read       \* the last read: its queue offset, and what the consumer received
Read == [offset : 0..Messages, message : 0..Messages, is : {"good", "flipped", "blank", "nothing"}]
ReadOK == read \in Read

VARIABLE reported   \* the positions that the error log names
ReportedOK == reported \subseteq Positions

VARIABLE named      \* the file that the error of a refused start names
NamedOK == named \in Files \cup {"none"}

VARIABLE offsets    \* history: the queue offset of each message that was sent
OffsetsOK == offsets \in Seq(Positions) /\ Len(offsets) <= Messages

VARIABLE covered    \* history: the messages that a checkpoint has counted
CoveredOK == covered \subseteq Positions

VARIABLE struck     \* history: the files that were damaged, in order
StruckOK == struck \in Seq(Files)

files == <<log, queue, checkpoint, table>>
memory == <<topic, read>>
history == <<offsets, covered>>
vars == <<phase, files, memory, peer, reported, named, history, struck>>

TypeOK ==
    /\ PhaseOK /\ LogOK /\ QueueOK /\ CheckpointOK /\ TableOK /\ TopicOK /\ PeerOK
    /\ ReadOK /\ ReportedOK /\ NamedOK /\ OffsetsOK /\ CoveredOK /\ StruckOK

NoRead == [offset |-> 0, message |-> Nothing, is |-> "nothing"]

Init ==
    /\ phase = "running"
    /\ log = <<>> /\ queue = <<>>
    /\ checkpoint = [count |-> 0, sound |-> TRUE]
    /\ table = [c \in Copies |-> "new"]
    /\ topic = TRUE
    /\ peer = <<>>
    /\ read = NoRead
    /\ reported = {}
    /\ named = "none"
    /\ offsets = <<>>
    /\ covered = {}
    /\ struck = <<>>

Running == phase = "running"

Good(o) == o \in 1..Len(log) /\ log[o].is = "good"

-----------------------------------------------------------------------------
(* A broker without damage *)

\* A message is stored, durable, and in its queue. Earlier reads are no longer judged: its offset may be that of a message
\* that was cut.
Send ==
    /\ Running
    /\ Len(offsets) < Messages
    /\ log' = Append(log, [message |-> Len(offsets) + 1, is |-> "good"])
    /\ queue' = Append(queue, Len(log) + 1)
    /\ offsets' = Append(offsets, Len(log) + 1)
    /\ read' = NoRead
    /\ UNCHANGED <<phase, checkpoint, table, topic, peer, reported, named, covered, struck>>

Counting(records) ==
    /\ checkpoint' = [count |-> Len(records), sound |-> TRUE]
    /\ covered' = covered \cup {records[i].message : i \in 1..Len(records)}

Checkpoint ==
    /\ Running
    /\ checkpoint # [count |-> Len(log), sound |-> TRUE]
    /\ Counting(log)
    /\ UNCHANGED <<phase, log, queue, table, memory, peer, reported, named, offsets, struck>>

\* The slave copies the next record, which it checks.
Copy ==
    /\ HasPeer /\ Running
    /\ Good(Len(peer) + 1)
    /\ peer' = Append(peer, log[Len(peer) + 1].message)
    /\ UNCHANGED <<phase, files, memory, reported, named, history, struck>>

\* A clean exit and a crash leave the same durable bytes.
Stop ==
    /\ Running
    /\ phase' = "down"
    /\ topic' = FALSE /\ read' = NoRead
    /\ UNCHANGED <<files, peer, reported, named, history, struck>>

-----------------------------------------------------------------------------
(* Faults *)

Strike(fault, file) ==
    /\ fault \in Faults
    /\ phase # "refused"
    /\ struck' = Append(struck, file)
    /\ UNCHANGED <<phase, memory, peer, reported, named, history>>

\* A flipped bit alters a record. After a lost write, the earlier bytes are there, which are no record.
DamageRecord(o, becomes) ==
    /\ Good(o)
    /\ Strike(IF becomes = "flipped" THEN "flip" ELSE "lost", "log")
    /\ log' = [log EXCEPT ![o].is = becomes]
    /\ UNCHANGED <<queue, checkpoint, table>>

\* An entry points at another position, or was never written.
DamageEntry(o, at) ==
    /\ o \in 1..Len(queue)
    /\ queue[o] = o /\ at # o
    /\ Strike(IF at = Nothing THEN "lost" ELSE "flip", "queue")
    /\ queue' = [queue EXCEPT ![o] = at]
    /\ UNCHANGED <<log, checkpoint, table>>

\* The checkpoint is altered, or has an earlier content.
DamageCheckpoint(count, sound) ==
    /\ checkpoint.sound
    /\ sound => count < checkpoint.count
    /\ ~sound => count # checkpoint.count
    /\ Strike(IF sound THEN "lost" ELSE "flip", "checkpoint")
    /\ checkpoint' = [count |-> count, sound |-> sound]
    /\ UNCHANGED <<log, queue, table>>

DamageTable(c, becomes) ==
    /\ table[c] = "new"
    /\ Strike(IF becomes = "bad" THEN "flip" ELSE "lost", "table")
    /\ table' = [table EXCEPT ![c] = becomes]
    /\ UNCHANGED <<log, queue, checkpoint>>

\* The files of the log after the first `kept` ones are missing.
LoseSegments(kept) ==
    /\ phase = "down"
    /\ kept < Len(log)
    /\ Strike("missing", "log")
    /\ log' = Prefix(log, kept)
    /\ UNCHANGED <<queue, checkpoint, table>>

LoseQueue ==
    /\ phase = "down"
    /\ queue # <<>>
    /\ Strike("missing", "queue")
    /\ queue' = <<>>
    /\ UNCHANGED <<log, checkpoint, table>>

-----------------------------------------------------------------------------
(* A start *)

\* A checkpoint whose checksum is wrong counts nothing.
Known == IF checkpoint.sound THEN checkpoint.count ELSE 0

\* Before the known position, the log was durable, and it continues after damage. Later damage ends it.
Ends(end) ==
    /\ \A o \in Known + 1..end : Good(o)
    /\ end = Len(log) \/ (end >= Known /\ ~Good(end + 1))

End == CHOOSE end \in 0..Len(log) : Ends(end)

\* What follows the end is cut, and the error log names it. A start sees its bytes, or its entries in the queue.
CutPlaces == End + 1..Max(Len(log), Len(queue))

\* The entry of a damaged record cannot be written again.
Gap == \E o \in Len(queue) + 1..End : ~Good(o)

Problem ==
    IF \A c \in Copies : table[c] = "bad" THEN "table"
    ELSE IF Len(log) < Known THEN "log"
    ELSE IF Gap THEN "queue"
    ELSE "none"

\* Of the two copies, the newer one counts that is sound.
HasTopic == \E c \in Copies : table[c] = "new"

Recover ==
    /\ phase = "down"
    /\ Problem = "none"
    /\ phase' = "running"
    /\ log' = Prefix(log, End)
    /\ queue' = [o \in 1..End |-> IF o <= Len(queue) /\ o <= Known THEN queue[o] ELSE o]
    /\ Counting(Prefix(log, End))
    /\ topic' = HasTopic
    /\ table' = [c \in Copies |-> IF topic' THEN "new" ELSE "old"]
    /\ reported' = reported \cup CutPlaces
    /\ UNCHANGED <<read, peer, named, offsets, struck>>

Refuse ==
    /\ phase = "down"
    /\ Problem # "none"
    /\ phase' = "refused"
    /\ named' = Problem
    /\ UNCHANGED <<files, memory, peer, reported, history, struck>>

-----------------------------------------------------------------------------
(* Reads and repairs *)

\* A consumer reads at a queue offset. A damaged entry is written again. A damaged record is reported, and left out.
Consume(o) ==
    /\ Running
    /\ o \in {offsets[m] : m \in 1..Len(offsets)}
    /\ IF topic /\ Good(o)
       THEN /\ read' = [offset |-> o, message |-> log[o].message, is |-> log[o].is]
            /\ queue' = [queue EXCEPT ![o] = o]
            /\ reported' = reported
       ELSE /\ read' = [offset |-> o, message |-> Nothing, is |-> "nothing"]
            /\ queue' = queue
            /\ reported' = IF topic /\ o <= Len(log) THEN reported \cup {o} ELSE reported
    /\ UNCHANGED <<phase, log, checkpoint, table, topic, peer, named, history, struck>>

PeerHas(o) == o <= Len(peer) /\ peer[o] = log[o].message

\* The slave's record replaces a damaged one that was found.
Repair(o) ==
    /\ Running
    /\ o \in reported /\ o <= Len(log)
    /\ ~Good(o)
    /\ PeerHas(o)
    /\ log' = [log EXCEPT ![o].is = "good"]
    /\ UNCHANGED <<phase, queue, checkpoint, table, memory, peer, reported, named, history, struck>>

-----------------------------------------------------------------------------
(* Next and Spec *)

Serve == Send \/ Checkpoint \/ Copy \/ Stop \/ Recover \/ Refuse \/ \E o \in Positions : Consume(o) \/ Repair(o)

Fault ==
    \/ \E o \in Positions :
        \/ \E becomes \in {"flipped", "blank"} : DamageRecord(o, becomes)
        \/ \E at \in 0..Messages + 1 : DamageEntry(o, at)
    \/ \E count \in 0..Messages, sound \in BOOLEAN : DamageCheckpoint(count, sound)
    \/ \E c \in Copies, becomes \in {"old", "bad"} : DamageTable(c, becomes)
    \/ \E kept \in 0..Messages : LoseSegments(kept)
    \/ LoseQueue

Next == Serve \/ Fault

\* A broker that is down is started. Consumers read each offset again and again, and repairs continue.
Starts == WF_vars(Recover \/ Refuse)
Consumes == \A o \in Positions : SF_vars(Consume(o))
Repairs == \A o \in Positions : SF_vars(Repair(o))

Fairness == Starts /\ Consumes /\ Repairs

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

\* ROT-2 and ROT-3 are for one fault: a second one can damage the means of the repair.
OneFault == Len(struck) <= 1

\* ROT-1: a damaged record is never delivered as good
NeverSilentlyWrong ==
    read.is # "nothing" => read.is = "good" /\ offsets[read.message] = read.offset

\* ROT-2: a message that was durable is delivered, or its loss is reported by its place, or the start is refused
NeverSilentlyLost ==
    OneFault /\ read.offset # 0 /\ read.is = "nothing" => read.offset \in reported

\* ROT-3: after damage, a new message never gets the queue offset of an earlier message that a checkpoint counted
OffsetsNotReused ==
    OneFault => \A m, n \in 1..Len(offsets) : m < n /\ m \in covered => offsets[m] # offsets[n]

\* ROT-4: a start that damage prevents is refused with an error that names a file that was damaged
RefusedByName == phase = "refused" <=> named # "none" /\ named \in {struck[i] : i \in 1..Len(struck)}

\* These are relations between the variables, not promises to users.
Coherent ==
    /\ Running => Len(queue) = Len(log)
    /\ ~Running => ~topic /\ read = NoRead
    /\ peer # <<>> => HasPeer
    /\ Len(log) <= Len(offsets)
    /\ \A o \in 1..Len(log) : offsets[log[o].message] = o
    /\ \A o \in 1..Len(peer) : offsets[peer[o]] = o
    /\ covered \subseteq 1..Len(offsets)
    /\ struck = <<>> =>
        /\ phase # "refused" /\ reported = {}
        /\ \A o \in 1..Len(log) : Good(o) /\ queue[o] = o
        /\ checkpoint.sound
        /\ \A c \in Copies : table[c] = "new"

(* Consistency: constraints on steps. They make a wrong step fail where it is made. *)

\* A message is appended behind the others. Faults change the state of a record, a start cuts the log.
LogMoves ==
    [][log' # log =>
        \/ /\ Running /\ Len(offsets') = Len(offsets) + 1
           /\ log' = Append(log, [message |-> Len(offsets'), is |-> "good"])
           /\ queue' = Append(queue, Len(log'))
           /\ offsets' = Append(offsets, Len(log')) /\ read' = NoRead
           /\ UNCHANGED <<phase, checkpoint, table, topic, peer, reported, named, covered, struck>>
        \/ /\ struck' = Append(struck, "log")
           /\ \/ /\ Len(log') = Len(log)
                 /\ \E o \in 1..Len(log) : Good(o) /\ log' = [log EXCEPT ![o].is = log'[o].is] /\ log'[o].is # "good"
              \/ phase = "down" /\ log' = Prefix(log, Len(log'))
           /\ UNCHANGED <<phase, queue, checkpoint, table, memory, peer, reported, named, history>>
        \/ /\ Running /\ UNCHANGED <<phase, queue, checkpoint, table, memory, peer, reported, named, history, struck>>
           /\ \E o \in reported \cap 1..Len(log) : PeerHas(o) /\ ~Good(o) /\ log' = [log EXCEPT ![o].is = "good"]
        \/ /\ phase = "down" /\ Running' /\ log' = Prefix(log, Len(log')) /\ ~Good(Len(log') + 1)
           /\ Len(log') >= Known]_vars

\* An entry changes when a message is sent, by a fault, by a read that finds it wrong, or at a start.
QueueMoves ==
    [][queue' # queue =>
        \/ offsets' # offsets
        \/ /\ struck' = Append(struck, "queue")
           /\ IF queue' = <<>> THEN phase = "down"
              ELSE Len(queue') = Len(queue) /\ \E o \in 1..Len(queue) : queue' = [queue EXCEPT ![o] = queue'[o]] /\ queue[o] = o
           /\ UNCHANGED <<phase, log, checkpoint, table, memory, peer, reported, named, history>>
        \/ (read'.is = "good" /\ queue' = [queue EXCEPT ![read'.offset] = read'.offset])
        \/ /\ phase = "down" /\ Running'
           /\ \A o \in 1..Len(log') : queue'[o] = o \/ (o <= Known /\ queue'[o] = queue[o])]_vars

\* A start counts the log that it keeps, knows the newest table, and names what it cuts.
StartsWell ==
    [][phase = "down" /\ phase' # "down" =>
        /\ UNCHANGED <<read, peer, offsets, struck>>
        /\ Running' =>
            /\ checkpoint' = [count |-> Len(log'), sound |-> TRUE] /\ Len(log') >= Known
            /\ \A o \in Known + 1..Len(log') : Good(o)
            /\ topic' <=> \E c \in Copies : table[c] = "new"
            /\ topic' => \A c \in Copies : table'[c] = "new"
            /\ \E c \in Copies : table[c] # "bad"
            /\ reported' = reported \cup (Len(log') + 1..Max(Len(log), Len(queue)))
            /\ UNCHANGED named
        /\ phase' = "refused" => UNCHANGED <<files, memory, reported, history>>]_vars

\* What a checkpoint counts is what the log has.
CheckpointMoves ==
    [][checkpoint' # checkpoint =>
        \/ /\ Running' /\ checkpoint' = [count |-> Len(log'), sound |-> TRUE]
           /\ covered' = covered \cup {log'[o].message : o \in 1..Len(log')}
           /\ (Running => UNCHANGED <<phase, log, queue, table, memory, peer, reported, named, offsets, struck>>)
        \/ /\ struck' = Append(struck, "checkpoint") /\ checkpoint.sound
           /\ (checkpoint'.sound => checkpoint'.count < checkpoint.count)
           /\ UNCHANGED <<phase, log, queue, table, memory, peer, reported, named, history>>]_vars

\* A table changes by a fault, or at a start.
TableMoves ==
    [][table' # table =>
        \/ /\ struck' = Append(struck, "table")
           /\ UNCHANGED <<phase, log, queue, checkpoint, memory, peer, reported, named, history>>
           /\ \E c \in Copies : table[c] = "new" /\ table' = [table EXCEPT ![c] = table'[c]]
        \/ (phase = "down" /\ Running')]_vars

\* A read reports only what it does not deliver. It changes nothing else but the entry.
ReadsWell ==
    [][read' # read /\ read'.offset # 0 =>
        /\ Running /\ UNCHANGED <<phase, log, checkpoint, table, topic, peer, named, history, struck>>
        /\ read'.is = "nothing" =>
            UNCHANGED queue /\ reported' \subseteq reported \cup {read'.offset} /\ ~(topic /\ Good(read'.offset))
        /\ read'.is # "nothing" => UNCHANGED reported]_vars

\* The slave copies sound records in order.
PeerMoves ==
    [][peer' # peer =>
        /\ HasPeer /\ Running /\ Good(Len(peer'))
        /\ peer' = Append(peer, log[Len(peer')].message)
        /\ UNCHANGED <<phase, files, memory, reported, named, history, struck>>]_vars

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive.
NeverStuck ==
    /\ Running =>
        /\ Len(offsets) < Messages => ENABLED (Next /\ Len(offsets') > Len(offsets))
        /\ ENABLED (Next /\ phase' = "down" /\ UNCHANGED files)
        /\ checkpoint # [count |-> Len(log), sound |-> TRUE] =>
            ENABLED (Next /\ Running' /\ checkpoint' = [count |-> Len(log), sound |-> TRUE])
        /\ HasPeer /\ Good(Len(peer) + 1) => ENABLED <<Next /\ UNCHANGED log>>_peer
        /\ \A m \in 1..Len(offsets) :
            /\ topic /\ Good(offsets[m]) =>
                ENABLED (Next /\ read'.offset = offsets[m] /\ read'.is = "good" /\ queue'[offsets[m]] = offsets[m])
            /\ topic /\ offsets[m] <= Len(log) /\ ~Good(offsets[m]) =>
                ENABLED (Next /\ read'.offset = offsets[m] /\ offsets[m] \in reported')
            /\ ~topic \/ offsets[m] > Len(log) => ENABLED (Next /\ read'.offset = offsets[m] /\ read'.is = "nothing")
        /\ \A o \in reported \cap 1..Len(log) :
            ~Good(o) /\ PeerHas(o) => ENABLED (Next /\ log'[o].is = "good")
    /\ phase = "down" =>
        /\ ENABLED (Next /\ phase' # "down")

-----------------------------------------------------------------------------
(* Liveness *)

Damaged(o) == o <= Len(log) /\ ~Good(o)

\* ROT-5: a damaged record is in the end repaired if a peer has it, and reported otherwise
DamageSettled == \A o \in Positions : Damaged(o) ~> ~Damaged(o) \/ phase = "refused" \/ (o \in reported /\ ~PeerHas(o))

=============================================================================
