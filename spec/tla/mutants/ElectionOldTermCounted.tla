----------------------- MODULE ElectionOldTermCounted -----------------------
(* Entries of older terms are committed by counting the nodes that have them (DLedger 4 and 278, Raft's
   figure 8). In the initial state n1 led term 1 and n2 led term 2, each with an entry of its own, and n1
   leads term 3 with the vote of n3. *)
EXTENDS MCElection

MutantCommitIndex(n) ==
    CHOOSE i \in 0..Len(log[n]) :
        /\ IsQuorum(Holders(n, i))
        /\ \A j \in (i + 1)..Len(log[n]) : ~IsQuorum(Holders(n, j))

Of(t) == [term |-> t, message |-> NoOp]

Each(first, second, third) == [n \in Nodes |-> CASE n = "n1" -> first [] n = "n2" -> second [] OTHER -> third]

MutantInit ==
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
==============================================================================
