------------------------------- MODULE Broadcast --------------------------------
(***************************************************************************)
(* In broadcast mode each member of a group reads all queues of a topic,   *)
(* and keeps its offsets in its own file. No member depends on another.    *)
(*                                                                         *)
(* Abstractions, one sentence each:                                        *)
(*  - Messages: a message is its place in its queue, from 1.               *)
(*  - Brokers: Flush and Replication say which messages are stored; here   *)
(*    no message is lost.                                                  *)
(*  - The end of a member and a crash differ only in the last write of the *)
(*    file, which may happen at any time.                                  *)
(*  - Files: the file of a member is replaced as a whole, so it is intact. *)
(*  - Failures: a message that fails is not repeated, so it counts as      *)
(*    consumed.                                                            *)
(*  - First offset: a member that has none begins at the end of a queue,   *)
(*    which is the default.                                                *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Members,  \* the members of the group, strings
    Queues,   \* the queues that the topic may have, strings
    Initial   \* the queues that it has from the beginning

ASSUME Members # {} /\ Queues # {} /\ Initial \subseteq Queues

-----------------------------------------------------------------------------
(* State *)

VARIABLE exists  \* the queues of the topic
ExistsOK == exists \subseteq Queues

VARIABLE stored  \* by queue: the number of its messages
StoredOK == stored \in [Queues -> Nat]

VARIABLE alive   \* the members that run
AliveOK == alive \subseteq Members

VARIABLE old     \* by member: the queues that the topic had when the member started
OldOK == old \in [Members -> SUBSET Queues]

VARIABLE next    \* by member and queue: the place of the next message to pull; 0 if it does not read the queue
NextOK == next \in [Members -> [Queues -> Nat]]

VARIABLE held    \* by member and queue: the messages that were pulled and are not consumed
HeldOK == \A m \in Members, q \in Queues : held[m][q] \subseteq 1..stored[q]

VARIABLE file    \* by member and queue: the place in its file; 0 if there is none
FileOK == file \in [Members -> [Queues -> Nat]]

VARIABLE first   \* history, by member and queue: where it began to read for the first time; 0 if it did not
FirstOK == first \in [Members -> [Queues -> Nat]]

VARIABLE got     \* history, by member and queue: the messages that it consumed
GotOK == \A m \in Members, q \in Queues : got[m][q] \subseteq 1..stored[q]

topic == <<exists, stored>>
vars == <<topic, alive, old, next, held, file, first, got>>

TypeOK ==
    ExistsOK /\ StoredOK /\ AliveOK /\ OldOK /\ NextOK /\ HeldOK /\ FileOK /\ FirstOK /\ GotOK

Init ==
    /\ exists = Initial
    /\ stored = [q \in Queues |-> 0]
    /\ alive = {}
    /\ old = [m \in Members |-> {}]
    /\ next = [m \in Members |-> [q \in Queues |-> 0]]
    /\ held = [m \in Members |-> [q \in Queues |-> {}]]
    /\ file = [m \in Members |-> [q \in Queues |-> 0]]
    /\ first = [m \in Members |-> [q \in Queues |-> 0]]
    /\ got = [m \in Members |-> [q \in Queues |-> {}]]

-----------------------------------------------------------------------------
(* The topic *)

Create(q) ==
    /\ q \notin exists
    /\ exists' = exists \cup {q}
    /\ UNCHANGED <<stored, alive, old, next, held, file, first, got>>

Store(q) ==
    /\ q \in exists
    /\ stored' = [stored EXCEPT ![q] = @ + 1]
    /\ UNCHANGED <<exists, alive, old, next, held, file, first, got>>

-----------------------------------------------------------------------------
(* The members *)

Start(m) ==
    /\ m \notin alive
    /\ alive' = alive \cup {m}
    /\ old' = [old EXCEPT ![m] = exists]
    /\ UNCHANGED <<topic, next, held, file, first, got>>

\* Where a member begins. Of a queue that was created while it runs it reads each message.
StartPlace(m, q) ==
    IF file[m][q] # 0 THEN file[m][q] ELSE IF q \in old[m] THEN stored[q] + 1 ELSE 1

\* The member begins to read a queue. It writes the place to its file even if no message arrives.
Begin(m, q) ==
    /\ m \in alive
    /\ q \in exists
    /\ next[m][q] = 0
    /\ next' = [next EXCEPT ![m][q] = StartPlace(m, q)]
    /\ file' = [file EXCEPT ![m][q] = StartPlace(m, q)]
    /\ first' = [first EXCEPT ![m][q] = IF @ = 0 THEN StartPlace(m, q) ELSE @]
    /\ UNCHANGED <<topic, alive, old, held, got>>

Pull(m, q) ==
    /\ next[m][q] # 0
    /\ next[m][q] <= stored[q]
    /\ held' = [held EXCEPT ![m][q] = @ \cup {next[m][q]}]
    /\ next' = [next EXCEPT ![m][q] = @ + 1]
    /\ UNCHANGED <<topic, alive, old, file, first, got>>

\* A call of the listener ends. Several calls may run at once.
Consume(m, q, i) ==
    /\ i \in held[m][q]
    /\ held' = [held EXCEPT ![m][q] = @ \ {i}]
    /\ got' = [got EXCEPT ![m][q] = @ \cup {i}]
    /\ UNCHANGED <<topic, alive, old, next, file, first>>

\* The offset is that of the first message that is not consumed.
Offset(m, q) ==
    IF held[m][q] = {} THEN next[m][q] ELSE CHOOSE i \in held[m][q] : \A j \in held[m][q] : i <= j

Persist(m, q) ==
    /\ next[m][q] # 0
    /\ file[m][q] # Offset(m, q)
    /\ file' = [file EXCEPT ![m][q] = Offset(m, q)]
    /\ UNCHANGED <<topic, alive, old, next, held, first, got>>

\* The process of a member ends. Only its file remains.
Die(m) ==
    /\ m \in alive
    /\ alive' = alive \ {m}
    /\ old' = [old EXCEPT ![m] = {}]
    /\ next' = [next EXCEPT ![m] = [q \in Queues |-> 0]]
    /\ held' = [held EXCEPT ![m] = [q \in Queues |-> {}]]
    /\ UNCHANGED <<topic, file, first, got>>

-----------------------------------------------------------------------------
(* Next and Spec *)

Next ==
    \/ \E q \in Queues : Create(q) \/ Store(q)
    \/ \E m \in Members : Start(m) \/ Die(m)
    \/ \E m \in Members, q \in Queues :
        Begin(m, q) \/ Pull(m, q) \/ Persist(m, q) \/ \E i \in 1..stored[q] : Consume(m, q, i)

\* Members end finitely often. Members that run read each queue, and their listeners return.
Starts == WF_vars(\E m \in Members : Start(m))
Begins == WF_vars(\E m \in Members, q \in Queues : Begin(m, q))
Pulls == \A m \in Members, q \in Queues : WF_vars(Pull(m, q))
Consumes == \A m \in Members, q \in Queues : WF_vars(\E i \in held[m][q] : Consume(m, q, i))
DeathsEnd == <>[][\A m \in Members : ~Die(m)]_vars

Fairness == Starts /\ Begins /\ Pulls /\ Consumes /\ DeathsEnd

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
(* Safety. The names are those in spec/invariants.toml. *)

\* DELIV-11: a member passes no message that it has not consumed, from where it began for the first time; of a queue that
\* is created while it runs, it passes no message at all
BroadcastToAll ==
    \A m \in Members, q \in Queues :
        /\ \A i \in 1..stored[q] :
            first[m][q] # 0 /\ first[m][q] <= i =>
                /\ i < next[m][q] => i \in got[m][q] \cup held[m][q]
                /\ i < file[m][q] => i \in got[m][q]
        /\ next[m][q] # 0 /\ q \notin old[m] => first[m][q] = 1

\* These are relations between the variables, not promises to users.
Coherent ==
    \A m \in Members, q \in Queues :
        /\ m \notin alive => next[m][q] = 0 /\ held[m][q] = {} /\ old[m] = {}
        /\ q \notin exists => stored[q] = 0 /\ first[m][q] = 0
        /\ first[m][q] = 0 <=> file[m][q] = 0
        /\ first[m][q] = 0 => next[m][q] = 0 /\ got[m][q] = {}
        /\ next[m][q] <= stored[q] + 1 /\ file[m][q] <= stored[q] + 1
        /\ first[m][q] <= file[m][q]
        /\ next[m][q] # 0 => file[m][q] <= next[m][q]
        /\ \A i \in held[m][q] : file[m][q] <= i /\ i < next[m][q]
        /\ \A i \in got[m][q] : first[m][q] <= i
        /\ old[m] \subseteq exists

(* Consistency: constraints on steps. They make a wrong step fail where it is made. *)

\* A step changes the topic, or what belongs to one member.
Apart ==
    [][/\ topic' # topic =>
            /\ UNCHANGED <<alive, old, next, held, file, first, got>>
            /\ \/ stored' = stored /\ \E q \in Queues \ exists : exists' = exists \cup {q}
               \/ exists' = exists /\ \E q \in exists : stored' = [stored EXCEPT ![q] = @ + 1]
       /\ topic' = topic => \E m \in Members : \A n \in Members \ {m} :
            /\ n \in alive' <=> n \in alive
            /\ old'[n] = old[n] /\ next'[n] = next[n] /\ held'[n] = held[n]
            /\ file'[n] = file[n] /\ first'[n] = first[n] /\ got'[n] = got[n]]_vars

\* A member starts, or ends and loses what is not in its file.
MembersChange ==
    [][\A m \in Members :
        /\ m \in alive' \ alive => old'[m] = exists /\ UNCHANGED <<next, held, file, first, got>>
        /\ m \in alive \ alive' => old'[m] = {} /\ UNCHANGED <<file, first, got>>
        /\ m \in alive \cap alive' => old'[m] = old[m]]_vars

\* A member that begins to read continues at the place in its file. It pulls each message once, in order.
PullsFollow ==
    [][\A m \in alive \cap alive', q \in Queues : next'[m][q] # next[m][q] =>
        /\ IF next[m][q] = 0
           THEN /\ file[m][q] # 0 => next'[m][q] = file[m][q]
                /\ file[m][q] = 0 /\ q \in old[m] => next'[m][q] = stored[q] + 1
                /\ file'[m][q] = next'[m][q] /\ held' = held
           ELSE /\ next'[m][q] = next[m][q] + 1 /\ file' = file
                /\ held'[m][q] = held[m][q] \cup {next[m][q]}
        /\ got' = got
        /\ next' = [next EXCEPT ![m][q] = next'[m][q]]
        /\ held' = [held EXCEPT ![m][q] = held'[m][q]]
        /\ file' = [file EXCEPT ![m][q] = file'[m][q]]]_vars

\* A message that was pulled is consumed.
ConsumedOnce ==
    [][\A m \in Members, q \in Queues : got'[m][q] # got[m][q] \/ (held[m][q] \ held'[m][q] # {} /\ m \in alive') =>
        \E i \in held[m][q] :
            /\ got' = [got EXCEPT ![m][q] = @ \cup {i}]
            /\ held' = [held EXCEPT ![m][q] = @ \ {i}]
            /\ UNCHANGED <<topic, alive, old, next, file, first>>]_vars

\* The file contains the place of the first message that is not consumed.
FileFollows ==
    [][\A m \in Members, q \in Queues : file'[m][q] # file[m][q] /\ next[m][q] # 0 =>
        /\ file'[m][q] \in held[m][q] \cup {next[m][q]}
        /\ \A i \in held[m][q] : file'[m][q] <= i
        /\ file' = [file EXCEPT ![m][q] = file'[m][q]]
        /\ UNCHANGED <<topic, alive, old, next, held, first, got>>]_vars

FirstKept ==
    [][\A m \in Members, q \in Queues : first'[m][q] # first[m][q] => first[m][q] = 0 /\ first'[m][q] = next'[m][q]]_vars

\* Every step that should be possible is enabled. Without this check, an invariant could hold only because an
\* action is too restrictive.
NeverStuck ==
    /\ \A q \in Queues \ exists : ENABLED (Next /\ exists' = exists \cup {q})
    /\ \A q \in exists : ENABLED (Next /\ stored'[q] = stored[q] + 1)
    /\ \A m \in Members :
        /\ m \notin alive => ENABLED (Next /\ m \in alive')
        /\ m \in alive => ENABLED (Next /\ m \notin alive')
        /\ \A q \in exists :
            /\ m \in alive /\ next[m][q] = 0 => ENABLED (Next /\ next'[m][q] # 0)
            /\ next[m][q] # 0 =>
                /\ next[m][q] <= stored[q] => ENABLED (Next /\ next'[m][q] = next[m][q] + 1)
                /\ \A i \in held[m][q] : ENABLED (Next /\ got'[m][q] = got[m][q] \cup {i} /\ held'[m][q] = held[m][q] \ {i})
                /\ held[m][q] = {} /\ file[m][q] # next[m][q] => ENABLED (Next /\ file'[m][q] = next[m][q])

=================================================================================
