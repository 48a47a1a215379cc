"""The engine in use decides which functions the DataFrame code gets."""

from concurrent.futures import ThreadPoolExecutor

from mqproof.spark_audit.engine import active, functions
from mqproof.spark_audit.engine.embedded import column_functions
from mqproof.spark_audit.engine.embedded.columns import EmbeddedWindow
from mqproof.spark_audit.engine.frames import Window


def test_spark_is_the_engine_unless_the_embedded_one_is_in_use() -> None:
    assert not active.is_embedded()
    assert functions.concat_ws.__module__ == "pyspark.sql.functions.builtin"
    with active.embedded():
        assert active.is_embedded()
        assert active.functions() is column_functions
        assert isinstance(Window.partitionBy("a"), EmbeddedWindow)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(active.is_embedded).result(), "checks run in threads"
    assert not active.is_embedded()


def test_a_function_that_is_not_translated_does_not_exist() -> None:
    with active.embedded():
        assert not hasattr(functions, "approx_count_distinct")
