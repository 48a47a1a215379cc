"""Checks the requests to a server against its accounts before any processor sees them."""

import logging
from typing import Final

from mqproof.impl.access.acl_file import AclFile
from mqproof.impl.access.permissions import TopicAt, no_messages
from mqproof.impl.remoting.budget import network_of
from mqproof.impl.remoting.codes import request_name
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.request_handler import RefusedError, error_answer
from mqproof.impl.runtime.network import Address
from mqproof.impl.runtime.notices import Notices

_log: Final = logging.getLogger(__name__)


class Gate:
    """The check of one server. `topic_at` finds the topic of a message that is requested by its place."""

    def __init__(self, file: AclFile, topic_at: TopicAt = no_messages) -> None:
        self.file = file
        self._topic_at = topic_at
        self._notices = Notices(_log)

    def refusal(self, request: Command, sender: Address) -> Command | None:
        """Return the response to a request that its sender may not make; None if it may."""
        try:
            self.file.rules.check(request, sender.host, self._topic_at)
        except RefusedError as refusal:
            name = request_name(request.code)
            # One line for each code and address: a stranger must not hide the mistake of a broker.
            self._notices.warn(
                f"{name} {network_of(sender.host)}", f"refused {name} of {sender}: {refusal.remark}"
            )
            return request.answer(refusal.code, remark=refusal.remark)
        except Exception as error:  # a handler never raises: a message may be unreadable, for example
            return error_answer(request, error)
        return None
