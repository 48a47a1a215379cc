--------------------------- MODULE SelectionShipped -----------------------------
(* A deviation of released consumers: their pulls do not contain the expression by default. The broker uses the
   latest one that a heartbeat of the group brought, and refuses only pulls with a later version. *)
EXTENDS MCSelection

CONSTANT OfOthers \* the expression of another member of the group

\* The application changed the expression, and a heartbeat overtook the pull.
LatestOfTheMember == wanted

\* Another member of the group subscribed later, to something else.
LatestOfOthers == OfOthers
=================================================================================
