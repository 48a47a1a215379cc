---------------------------- MODULE MCRequestReply -----------------------------
(* RequestReply without further bounds: the clients and the requests bound the state. Faults are not bounded. *)
EXTENDS RequestReply

MCNext ==
    \/ \E c \in Clients : Connect(c) \/ Disconnect(c) \/ Restart(c)
    \/ \E r \in Calls : Store(r) \/ Refuse(r) \/ Expire(r) \/ Reply(r)
    \/ \E c \in Clients, r \in Calls : Request(c, r)
    \/ \E c \in Clients, r \in Calls, arrives \in BOOLEAN : Receive(c, r, arrives)

MCInit == Init

MCSpec == Init /\ [][MCNext]_vars

MCFairSpec == MCSpec /\ Fairness

(* Each fairness clause is necessary, and strong where stated: without it RequestEnds fails. *)
WithoutConnectFairness == MCSpec /\ Stores /\ Expires /\ Replies /\ Receives
WithoutStoreFairness == MCSpec /\ Connects /\ Expires /\ Replies /\ Receives
WithoutExpireFairness == MCSpec /\ Connects /\ Stores /\ Replies /\ Receives
WithWeakReplyFairness == MCSpec /\ Connects /\ Stores /\ Expires /\ (\A r \in Patient : WF_vars(Reply(r))) /\ Receives
WithWeakReceiveFairness ==
    /\ MCSpec /\ Connects /\ Stores /\ Expires /\ Replies
    /\ \A r \in Patient : WF_vars(\E c \in Clients, arrives \in BOOLEAN : Receive(c, r, arrives))

(* Probes: each must be false in some reachable state, which shows that the action or situation does occur. *)
NoReply == \A r \in Calls : outcome[r] # "reply"
NoTimeout == \A r \in Calls : outcome[r] # "timeout"
NoRefusal == \A r \in Calls : outcome[r] # "refused"
NoRestart == \A r \in Calls : outcome[r] # "lost"
NoDisconnect == \A r \in Calls : outcome[r] = "waiting" => caller[r] \in registered
NoLateReply == \A r \in received : outcome[r] # "timeout"
NoReplyToNextProcess == \A r \in received : outcome[r] # "lost"
NoSecondReply == \A p \in pushes : outcome[p.call] # "reply"
NoLateStore == \A r \in stored : outcome[r] # "timeout"
NoUnconfirmed == \A r \in Calls : outcome[r] = "reply" => r \in confirmed
NoTwoClients == \A r, s \in Calls : outcome[r] = "reply" /\ outcome[s] = "reply" => caller[r] = caller[s]
NoTwoCalls == \A r, s \in Calls : r # s /\ outcome[r] = "waiting" /\ outcome[s] = "waiting" => caller[r] # caller[s]
=============================================================================
