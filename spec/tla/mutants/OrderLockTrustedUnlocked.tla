---------------------- MODULE OrderLockTrustedUnlocked -----------------------
(* A queue that is newly assigned counts as locked at once, as in issues 2621 and 5465. *)
EXTENDS MCOrderLock

MutantTrusts(m) ==
    trust[m] < LockTrust \/ asked[m] = RenewEvery
==============================================================================
