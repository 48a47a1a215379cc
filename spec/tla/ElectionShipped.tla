--------------------------- MODULE ElectionShipped ---------------------------
(* Weaknesses of released DLedger. Each configuration enables one of them; docs/explanation/as-shipped.md
   describes the consequences. Where the path to the failure is long, the model starts after one or two terms. *)
EXTENDS MCElection

\* Leader and followers count entries that are not durable yet.
ShippedKept(n) == Len(log[n])

\* Commits an entry by counting the nodes that have it, whatever its term (DLedger 4, 278).
ShippedCommitIndex(n) ==
    CHOOSE i \in 0..Len(log[n]) :
        /\ IsQuorum(Holders(n, i))
        /\ \A j \in (i + 1)..Len(log[n]) : ~IsQuorum(Holders(n, j))

\* The currterm file is deleted before its successor is renamed, and it is never fsynced. A crash may leave no
\* file, and the node then restarts in term 0 without a vote.
ShippedRestart(n) ==
    /\ role[n] = "DOWN"
    /\ role' = [role EXCEPT ![n] = "CANDIDATE"]
    /\ term' = [term EXCEPT ![n] = 0]
    /\ votedFor' = [votedFor EXCEPT ![n] = None]
    /\ known' = [known EXCEPT ![n] = 0]
    /\ UNCHANGED <<ledger, leader, answers, watermark, commit, network, answer, calm, history>>

\* TRUNCATE removes all entries after the compared entry, committed or not (DLedger 316).
ShippedHandlePush(m) ==
    LET n == m.target
    IN  /\ m.kind = "PUSH" /\ Follows(n, m) /\ Arrives(m)
        /\ CASE ~Matches(n, m.index - 1, m.prevTerm) ->
                    /\ Leads(m.source, m.term)
                    /\ Send({Push(m.source, n, log[m.source], m.index - 1)})
                    /\ UNCHANGED <<ledger, watermark>>
             [] Len(log[n]) = m.index /\ Matches(n, m.index, m.entry.term) ->
                    /\ Leads(m.source, m.term)
                    /\ m.index <= Kept(n)
                    /\ watermark' = [watermark EXCEPT ![m.source][n] = Max(@, m.index)]
                    /\ UNCHANGED <<ledger, network>>
             [] OTHER ->
                    /\ log' = [log EXCEPT ![n] = Append(Prefix(@, m.index - 1), m.entry)]
                    /\ durable' = [durable EXCEPT ![n] = Min(@, m.index - 1)]
                    /\ UNCHANGED <<watermark, network>>
        /\ UNCHANGED <<file, role, leader, known, answers, commit, answer, calm, history>>

\* A follower accepts a COMMIT from any sender, in its own term or a later one.
ShippedHandleCommit(m) ==
    /\ m.kind = "COMMIT" /\ Up(m.target)
    /\ m.index > commit[m.target]
    /\ commit' = [commit EXCEPT ![m.target] = m.index]
    /\ UNCHANGED <<file, ledger, nodeState, network, answer, calm, history>>

\* The candidate reports its own term as the term of its last entry (issue 2178, DLedger 52).
ShippedVotes(n) ==
    {[kind |-> "VOTE", source |-> n, target |-> p, term |-> term[n],
      endIndex |-> Len(log[n]), endTerm |-> term[n]] : p \in Peers(n)}

\* After a restart a node stands in its old term, even if it led that term.
ShippedStandsFrom(n) == term[n]

\* A leader with a quorum ignores a node that is in a later term (DLedger 85, 247, 325, 331).
ShippedHandleHeartBeat(m) ==
    LET code == HeartBeatCode(m)
    IN  /\ m.kind = "HEART_BEAT" /\ Up(m.target) /\ Arrives(m)
        /\ CASE code = "SUCCESS" -> leader[m.target] = None /\ BecomeFollower(m.target, m.source)
             [] code = "TERM_NOT_READY" -> BecomeCandidate(m.target, m.term) /\ <<role, known>>' # <<role, known>>
             [] OTHER -> FALSE
        /\ UNCHANGED <<file, ledger, commit, network, answer, calm, history>>

(* n1 led term 1 and n2 led term 2, each with an entry of its own. n1 leads term 3 with the vote of n3. *)
Of(t) == [term |-> t, message |-> NoOp]

Each(first, second, third) == [n \in Nodes |-> CASE n = "n1" -> first [] n = "n2" -> second [] OTHER -> third]

InTermThree ==
    /\ role = Each("LEADER", "CANDIDATE", "FOLLOWER")
    /\ term = Each(3, 2, 3)
    /\ votedFor = Each("n1", "n2", "n1")
    /\ log = Each(<<Of(1), Of(3)>>, <<Of(2)>>, <<Of(1)>>)
    /\ durable = Each(2, 1, 1)
    /\ leader = Each("n1", None, "n1")
    /\ known = Each(3, 4, 3)
    /\ answers = [n \in Nodes |-> NoAnswers]
    /\ watermark = [n \in Nodes |-> Zero]
    /\ commit = Zero
    /\ network = {[kind |-> "PUSH", source |-> "n1", target |-> "n3", term |-> 3, index |-> 1, prevTerm |-> 0, entry |-> Of(1)]}
    /\ answer = [m \in Messages |-> "unsent"]
    /\ calm = FALSE
    /\ ballots = Each([term |-> 3, candidates |-> {"n1"}], [term |-> 2, candidates |-> {"n2"}], [term |-> 3, candidates |-> {"n1"}])
    /\ winners = {[term |-> 1, node |-> "n1"], [term |-> 2, node |-> "n2"], [term |-> 3, node |-> "n1"]}
    /\ committed = <<>>
    /\ faults = [crashes |-> 0, losses |-> 0]
===============================================================================
