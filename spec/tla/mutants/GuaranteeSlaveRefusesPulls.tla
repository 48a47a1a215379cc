--------------------- MODULE GuaranteeSlaveRefusesPulls ----------------------
(* A slave refuses pulls, as released 5.x does with slaveReadEnable = false, its default. *)
EXTENDS MCGuarantee

MutantReadable(m) ==
    answer[m] = "elsewhere" \/ (Running("master") /\ InLog(m, "master"))
==============================================================================
