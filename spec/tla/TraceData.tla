----------------------------- MODULE TraceData -----------------------------
(* An example of a recorded trace. `mqproof trace-check` replaces this module by the recorded traces. *)

Traces == <<
    <<[event |-> "open", mode |-> "SYNC_FLUSH"],
      [event |-> "append", message |-> "m1", queue |-> "q0", offset |-> 0],
      [event |-> "flush", length |-> 1],
      [event |-> "answer", message |-> "m1", status |-> "SEND_OK"]>>
>>
=============================================================================
