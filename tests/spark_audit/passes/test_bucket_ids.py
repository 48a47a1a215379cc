"""The buckets of messages are derived from a sample of the log's ids."""

from mqproof.spark_audit.passes.bucket_ids import shared_prefix


def test_consecutive_ids_have_neighbouring_buckets() -> None:
    two_producers = [f"{n % 2:08X}{n // 2:08X}" for n in range(20_000)]
    assert shared_prefix(two_producers) == 14  # 256 of one producer's messages; the last digit is one of 16
    assert shared_prefix([f"{hash((n, 1)) & 0xFFFFFFFF:08X}" for n in range(20_000)]) == 0
    assert shared_prefix([]) == shared_prefix(["m"]) == 0
