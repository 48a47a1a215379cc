------------------------------ MODULE TraceReign ------------------------------
(***************************************************************************)
(* Is what the members of a DLedger group wrote into their event log, while *)
(* one of them led, a behaviour of Replication?                            *)
(*                                                                         *)
(* conformance/traces/leadership.py turns a group's log into one trace for each *)
(* leader. The leader is the master. The slave is no single member: it is  *)
(* the group's quorum, and its log is what the group has committed. Of     *)
(* several slaves a master of Replication heeds the best, of its followers *)
(* and itself a leader heeds the best that a majority reaches.             *)
(*  - The slave takes the next record when a quorum keeps it: the leader   *)
(*    by its own fsync, a follower by what it told, which must be durable  *)
(*    there and the leader's.                                              *)
(*  - The slave's acknowledgement is the leader's commit.                  *)
(*  - The leader waits for no fsync but those of the quorum: ASYNC_FLUSH.  *)
(*    And always for the quorum: SYNC_MASTER, with a slave that may be     *)
(*    late and never is away.                                              *)
(*  - A leader begins like a master that is started again: with the log    *)
(*    that it has, and a slave that has all that leaders of earlier terms  *)
(*    committed, and asks for its last record. If the leader lacks it,     *)
(*    this ends as Replication says: refused.                              *)
(*  - Another leader is another trace: it may have what the one before     *)
(*    lost, as no master has. What is committed binds them together.       *)
(*  - Positions count from a record on that all members have, durably: a   *)
(*    follower that was started again may speak of one before it.          *)
(*                                                                         *)
(* The first event says which kinds of events the members do not record.   *)
(* Steps of these kinds alone are hidden, each before the event that needs *)
(* it.                                                                     *)
(***************************************************************************)
EXTENDS Replication, TraceData

CONSTANT Members

VARIABLES
    t, l,     \* which trace, and which event of it is next
    ledger,   \* by member: its records, since it follows this leader
    durable,  \* by member: how many of them are durable
    told      \* by follower: how many it told the leader that it keeps

extra == <<ledger, durable, told>>

TraceView == <<vars, t, l, extra>>

Event == Traces[t][l]

Is(name) == l <= Len(Traces[t]) /\ Event.event = name /\ l' = l + 1 /\ UNCHANGED t

Hidden(name) == l <= Len(Traces[t]) /\ Event.event = name /\ UNCHANGED <<t, l, extra>>

\* A step of a kind that is not recorded, before one of these events.
Untold(kind, names) ==
    kind \in Traces[t][1].unrecorded /\ l <= Len(Traces[t]) /\ Event.event \in names /\ UNCHANGED <<t, l>>

Leader == Traces[t][1].node

Nothing == [n \in Members |-> 0]

\* The first event says who leads, with which log, and what was committed before.
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
    /\ told = Nothing
    /\ flushMode = "ASYNC_FLUSH" /\ role = "SYNC_MASTER"
    /\ phase = [n \in Nodes |-> "up"]
    /\ committed = [n \in Nodes |-> 0]
    /\ connected = [n \in Nodes |-> FALSE] /\ intact = FALSE /\ network = {}
    /\ sent = Unasked /\ acked = 0 /\ request = [m \in Messages |-> Waits]
    /\ verified = FALSE /\ refused = FALSE
    /\ seen = <<>> /\ forked = FALSE /\ recalled = FALSE
    /\ faults = [process |-> 0, master |-> 0, slave |-> 0, cuts |-> 0]

Begun ==
    /\ Is("reign")
    /\ IsPrefix(log["slave"], log["master"])
    /\ Event.durable \in 0..Len(log["master"])
    /\ UNCHANGED <<vars, extra>>

-----------------------------------------------------------------------------
(* The slave asks for its last record and finds it there, before the leader takes anything. *)

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
    /\ UNCHANGED <<durable, told>>

IsLeaders(records) == IsPrefix(records, log["master"])

\* It may have been down, and lost some of what it had; but not of what it told.
Followed ==
    /\ Is("follow")
    /\ Event.durable \in told[Event.node]..Len(Event.log)
    /\ IsLeaders(Prefix(Event.log, told[Event.node]))
    /\ ledger' = [ledger EXCEPT ![Event.node] = Event.log]
    /\ durable' = [durable EXCEPT ![Event.node] = Event.durable]
    /\ UNCHANGED <<vars, told>>

\* The leader's record, behind records that are the leader's; what it replaces nobody was promised.
Wrote ==
    /\ Is("write")
    /\ LET n == Event.node
           before == Event.index - 1
       IN  /\ before \in 0..Len(ledger[n]) /\ before < Len(log["master"])
           /\ log["master"][Event.index] = Event.message
           /\ IsLeaders(Prefix(ledger[n], before))
           /\ before < Len(ledger[n]) => before >= told[n]
           /\ ledger' = [ledger EXCEPT ![n] = Append(Prefix(@, before), Event.message)]
           /\ durable' = [durable EXCEPT ![n] = IF before < @ THEN before ELSE @]
    /\ UNCHANGED <<vars, told>>

Flushed ==
    /\ Is("flush")
    /\ Event.index \in durable[Event.node]..Len(ledger[Event.node])
    /\ durable' = [durable EXCEPT ![Event.node] = Event.index]
    /\ UNCHANGED <<vars, ledger, told>>

Acknowledged ==
    /\ Is("keep")
    /\ Event.index <= durable[Event.node]
    /\ IsLeaders(Prefix(ledger[Event.node], Event.index))
    /\ told' = [told EXCEPT ![Event.node] = Max(@, Event.index)]
    /\ UNCHANGED <<vars, ledger, durable>>

-----------------------------------------------------------------------------
(* Syncs and acknowledgements that are not in the log *)

\* So much the leader commits, or has committed, as the next event tells.
Asked ==
    IF Event.event = "commit" THEN (IF Event.node = Leader THEN Event.index ELSE 0)
    ELSE IF Event.event = "answer" /\ InLog(Event.message, log["master"]) THEN Position(Event.message) ELSE 0

FlushedUntold ==
    /\ Untold("flush", {"keep", "commit", "answer"})
    /\ \E n \in IF Event.event = "keep" THEN {Event.node} ELSE Members :
        LET i == IF Event.event = "keep" THEN Event.index ELSE Asked
        IN  /\ i \in (durable[n] + 1)..Len(ledger[n])
            /\ durable' = [durable EXCEPT ![n] = i]
    /\ UNCHANGED <<vars, ledger, told>>

KeptUntold ==
    /\ Untold("ha_ack", {"commit", "answer"})
    /\ \E n \in Members \ {Leader} :
        /\ told[n] < Asked /\ Asked <= durable[n]
        /\ IsLeaders(Prefix(ledger[n], Asked))
        /\ told' = [told EXCEPT ![n] = Asked]
    /\ UNCHANGED <<vars, ledger, durable>>

-----------------------------------------------------------------------------
(* What the quorum keeps *)

Keeps(n) == IF n = Leader THEN durable[n] ELSE told[n]

KeptByQuorum(index) == 2 * Cardinality({n \in Members : Keeps(n) >= index}) > Cardinality(Members)

Commits ==
    /\ Hidden("commit") \/ (Untold("raft_commit", {"answer"}) /\ UNCHANGED extra)
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

CommittedUntold ==
    /\ Untold("raft_commit", {"answer"})
    /\ acked < Asked /\ ReceiveAck(Ack(Asked))
    /\ UNCHANGED extra

\* What a follower shows to consumers.
CommittedByFollower ==
    /\ Is("commit") /\ Event.node # Leader
    /\ Event.index <= Len(ledger[Event.node])
    /\ IsPrefix(Prefix(ledger[Event.node], Event.index), log["slave"])
    /\ UNCHANGED <<vars, extra>>

Replied == Is("answer") /\ AnswerSend(Event.message) /\ answer'[Event.message] = "SEND_OK" /\ UNCHANGED extra

\* It stepped down, or its process ended: whoever waits is told nothing any more.
Ended == Is("end") /\ ProcessCrash("master") /\ UNCHANGED extra

TraceNext ==
    \/ Begun \/ Connected \/ Began \/ SentLast \/ FoundThere
    \/ Appended \/ Followed \/ Wrote \/ Flushed \/ Acknowledged
    \/ SentNext \/ TookNext \/ CommittedByLeader \/ CommittedByFollower \/ Replied \/ Ended
    \/ FlushedUntold \/ KeptUntold \/ CommittedUntold

=============================================================================
