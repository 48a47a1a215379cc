"""What bodies say: the text that a producer gave, however it travelled."""

from typing import Final

from pyspark.sql import functions as f
from pyspark.sql.types import StringType

from mqproof.impl.client.compression import inflated_body


def text_of(body: bytes, sys_flag: int) -> str | None:
    """Made whole again where it is compressed; None: no text."""
    try:
        return inflated_body(bytes(body), sys_flag).decode()
    except UnicodeDecodeError:
        return None


text: Final = f.udf(text_of, StringType(), useArrow=False)
"""The same of the columns body and sys_flag."""
