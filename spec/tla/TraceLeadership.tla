-------------------------- MODULE TraceLeadership ---------------------------
(***************************************************************************)
(* Checks that the event log of a DLedger group's members, during the      *)
(* leadership of one of them, is a behaviour of Replication.               *)
(*                                                                         *)
(* conformance/traces/leadership.py converts a group's log into one trace  *)
(* for each leader. The leader is the master. The slave is not a single    *)
(* member: it is the group's quorum, and its log contains the group's      *)
(* committed entries. A master of Replication uses the best position of    *)
(* several slaves. A leader uses the best position that a majority of its  *)
(* followers and itself reaches.                                           *)
(*  - The slave takes the next record when a quorum keeps it. The leader   *)
(*    keeps it after its own fsync. A follower keeps it after its          *)
(*    acknowledgement, which must cover only durable records that equal    *)
(*    the leader's.                                                        *)
(*  - The leader waits only for the fsyncs of the quorum (ASYNC_FLUSH). It *)
(*    always waits for the quorum (SYNC_MASTER, with a slave that may be   *)
(*    late but is never absent).                                           *)
(*  - A leader begins like a restarted master. It has its own log. The     *)
(*    slave has all entries that leaders of earlier terms committed, and   *)
(*    requests its last record. If the leader lacks that record, the slave *)
(*    refuses it, as in Replication.                                       *)
(*  - Another leader has another trace: it may have records that the       *)
(*    previous leader lost, which no master can. The committed entries     *)
(*    connect the traces.                                                  *)
(*  - Positions count from a record that all members have durably. A       *)
(*    restarted follower may refer to an earlier record.                   *)
(*                                                                         *)
(* The first event lists the kinds of events that the members do not       *)
(* record. Only steps of these kinds are hidden, each before the event     *)
(* that needs it.                                                          *)
(***************************************************************************)
EXTENDS Replication, TraceData

CONSTANT Members

VARIABLES
    t, l,        \* the index of the trace, and the index of its next event
    ledger,      \* by member: its records, since it follows this leader
    durable,     \* by member: the number of its durable records
    acknowledged \* by follower: the number of records that it has acknowledged to the leader

extra == <<ledger, durable, acknowledged>>

TraceView == <<vars, t, l, extra>>

Event == Traces[t][l]

Is(name) == l <= Len(Traces[t]) /\ Event.event = name /\ l' = l + 1 /\ UNCHANGED t

Hidden(name) == l <= Len(Traces[t]) /\ Event.event = name /\ UNCHANGED <<t, l, extra>>

\* A step of a kind that is not recorded, before one of these events.
Unlogged(kind, names) ==
    kind \in Traces[t][1].unrecorded /\ l <= Len(Traces[t]) /\ Event.event \in names /\ UNCHANGED <<t, l>>

Leader == Traces[t][1].node

Nothing == [n \in Members |-> 0]

\* The first event contains the leader, its log, and the entries that were committed before.
TraceInit ==
    /\ t \in DOMAIN Traces /\ l = 1
    /\ LET own == Event.log
           theirs == Event.committed
           among(m, records) == \E i \in 1..Len(records) : records[i] = m
       IN  /\ log = [master |-> own, slave |-> theirs]
           /\ flushed = [master |-> Len(own), slave |-> Len(theirs)]
           /\ answer = [m \in Messages |-> IF among(m, own) \/ among(m, theirs) THEN "unknown" ELSE "unsent"]
           /\ held = {theirs[i] : i \in 1..Len(theirs)}
           /\ ledger = [n \in Members |-> IF n = Event.node THEN own ELSE <<>>]
           /\ durable = [Nothing EXCEPT ![Event.node] = Event.durable]
    /\ acknowledged = Nothing
    /\ flushMode = "ASYNC_FLUSH" /\ role = "SYNC_MASTER"
    /\ phase = [n \in Nodes |-> "up"]
    /\ committed = [n \in Nodes |-> 0]
    /\ connected = [n \in Nodes |-> FALSE] /\ intact = FALSE /\ network = {}
    /\ sent = NotRequested /\ acked = 0 /\ request = [m \in Messages |-> Waits]
    /\ verified = FALSE /\ refused = FALSE
    /\ seen = <<>> /\ forked = FALSE /\ recalled = FALSE
    /\ faults = [process |-> 0, master |-> 0, slave |-> 0, cuts |-> 0]

Begun ==
    /\ Is("lead")
    /\ IsPrefix(log["slave"], log["master"])
    /\ Event.durable \in 0..Len(log["master"])
    /\ UNCHANGED <<vars, extra>>

-----------------------------------------------------------------------------
(* Before the leader takes a message, the slave requests its last record and finds it in the leader's log. *)

Connected == Hidden("append") /\ Connect

Began == Hidden("append") /\ \E frame \in network : AcceptReport(frame)

SentLast == Hidden("append") /\ sent < Len(log["slave"]) /\ TransferRecord

FoundThere == Hidden("append") /\ ~verified /\ \E frame \in network : ReceiveTransfer(frame)

-----------------------------------------------------------------------------
(* Records *)

Appended ==
    /\ Is("append")
    /\ verified
    /\ AppendRecord(Event.message)
    /\ Len(log'["master"]) = Event.index
    /\ ledger' = [ledger EXCEPT ![Leader] = log'["master"]]
    /\ UNCHANGED <<durable, acknowledged>>

IsLeaders(records) == IsPrefix(records, log["master"])

\* The follower may have crashed and lost records, but none that it had acknowledged.
Followed ==
    /\ Is("follow")
    /\ Event.durable \in acknowledged[Event.node]..Len(Event.log)
    /\ IsLeaders(Prefix(Event.log, acknowledged[Event.node]))
    /\ ledger' = [ledger EXCEPT ![Event.node] = Event.log]
    /\ durable' = [durable EXCEPT ![Event.node] = Event.durable]
    /\ UNCHANGED <<vars, acknowledged>>

\* A follower writes the leader's record after records that equal the leader's. It replaces only records that
\* it has not acknowledged.
Wrote ==
    /\ Is("write")
    /\ LET n == Event.node
           before == Event.index - 1
       IN  /\ before \in 0..Len(ledger[n]) /\ before < Len(log["master"])
           /\ log["master"][Event.index] = Event.message
           /\ IsLeaders(Prefix(ledger[n], before))
           /\ before < Len(ledger[n]) => before >= acknowledged[n]
           /\ ledger' = [ledger EXCEPT ![n] = Append(Prefix(@, before), Event.message)]
           /\ durable' = [durable EXCEPT ![n] = IF before < @ THEN before ELSE @]
    /\ UNCHANGED <<vars, acknowledged>>

Flushed ==
    /\ Is("flush")
    /\ Event.index \in durable[Event.node]..Len(ledger[Event.node])
    /\ durable' = [durable EXCEPT ![Event.node] = Event.index]
    /\ UNCHANGED <<vars, ledger, acknowledged>>

Acknowledged ==
    /\ Is("keep")
    /\ Event.index <= durable[Event.node]
    /\ IsLeaders(Prefix(ledger[Event.node], Event.index))
    /\ acknowledged' = [acknowledged EXCEPT ![Event.node] = Max(@, Event.index)]
    /\ UNCHANGED <<vars, ledger, durable>>

-----------------------------------------------------------------------------
(* Syncs and acknowledgements that are not in the log *)

\* The index that the leader commits, or has committed, according to the next event.
Asked ==
    IF Event.event = "commit" THEN (IF Event.node = Leader THEN Event.index ELSE 0)
    ELSE IF Event.event = "answer" /\ InLog(Event.message, log["master"]) THEN Position(Event.message) ELSE 0

FlushedUnlogged ==
    /\ Unlogged("flush", {"keep", "commit", "answer"})
    /\ \E n \in IF Event.event = "keep" THEN {Event.node} ELSE Members :
        LET i == IF Event.event = "keep" THEN Event.index ELSE Asked
        IN  /\ i \in (durable[n] + 1)..Len(ledger[n])
            /\ durable' = [durable EXCEPT ![n] = i]
    /\ UNCHANGED <<vars, ledger, acknowledged>>

KeptUnlogged ==
    /\ Unlogged("ha_ack", {"commit", "answer"})
    /\ \E n \in Members \ {Leader} :
        /\ acknowledged[n] < Asked /\ Asked <= durable[n]
        /\ IsLeaders(Prefix(ledger[n], Asked))
        /\ acknowledged' = [acknowledged EXCEPT ![n] = Asked]
    /\ UNCHANGED <<vars, ledger, durable>>

-----------------------------------------------------------------------------
(* Records that the quorum keeps *)

Keeps(n) == IF n = Leader THEN durable[n] ELSE acknowledged[n]

KeptByQuorum(index) == 2 * Cardinality({n \in Members : Keeps(n) >= index}) > Cardinality(Members)

Commits ==
    /\ Hidden("commit") \/ (Unlogged("raft_commit", {"answer"}) /\ UNCHANGED extra)
    /\ Len(log["slave"]) < Asked

SentNext == Commits /\ sent = Len(log["slave"]) /\ TransferRecord

TookNext ==
    /\ Commits
    /\ KeptByQuorum(Len(log["slave"]) + 1)
    /\ \E frame \in network : frame.position = Len(log["slave"]) /\ ReceiveTransfer(frame)

CommittedByLeader ==
    /\ Is("commit") /\ Event.node = Leader
    /\ ReceiveAck(Ack(Event.index))
    /\ acked' = Event.index
    /\ UNCHANGED extra

CommittedUnlogged ==
    /\ Unlogged("raft_commit", {"answer"})
    /\ acked < Asked /\ ReceiveAck(Ack(Asked))
    /\ UNCHANGED extra

\* The entries that a follower shows to consumers.
CommittedByFollower ==
    /\ Is("commit") /\ Event.node # Leader
    /\ Event.index <= Len(ledger[Event.node])
    /\ IsPrefix(Prefix(ledger[Event.node], Event.index), log["slave"])
    /\ UNCHANGED <<vars, extra>>

Replied == Is("answer") /\ AnswerSend(Event.message) /\ answer'[Event.message] = "SEND_OK" /\ UNCHANGED extra

\* The leader stepped down, or its process ended: waiting producers get no answer.
Ended == Is("end") /\ ProcessCrash("master") /\ UNCHANGED extra

TraceNext ==
    \/ Begun \/ Connected \/ Began \/ SentLast \/ FoundThere
    \/ Appended \/ Followed \/ Wrote \/ Flushed \/ Acknowledged
    \/ SentNext \/ TookNext \/ CommittedByLeader \/ CommittedByFollower \/ Replied \/ Ended
    \/ FlushedUnlogged \/ KeptUnlogged \/ CommittedUnlogged

=============================================================================
