"""The functions of pyspark.sql.functions, of the active engine. To mypy, they are PySpark's own."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.functions import *  # noqa: F403  # all of them, with their types
    from pyspark.sql.functions import countDistinct as countDistinct  # not in its __all__
else:
    from mqproof.spark_audit.engine import active

    def __getattr__(name):
        return getattr(active.functions(), name)
