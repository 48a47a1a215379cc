"""The texts of message bodies, decompressed if necessary."""

from mqproof.impl.client.messages.compression import inflated_body


def text_of(body: bytes, sys_flag: int) -> str | None:
    """Return the body as text, decompressed if it is compressed; None if it is not text."""
    try:
        return inflated_body(bytes(body), sys_flag).decode()
    except UnicodeDecodeError:
        return None
