"""The web application: which page answers which address, who may see it, and what failures look like."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from mqproof.impl.admin import times
from mqproof.impl.admin.admin import UnreachableError
from mqproof.impl.client.model import ClientError, MessageError, NoRouteError, RefusalError
from mqproof.impl.console.form_values import FORM_BYTES_MAX, FormError, FormValues, parse_values
from mqproof.impl.console.page_parts import Answer, Note, Page, Redirect
from mqproof.impl.console.pages import (
    account_pages,
    cluster_pages,
    consumer_pages,
    dashboard_page,
    dead_letter_pages,
    login_page,
    message_pages,
    offset_forms,
    operations_page,
    producer_page,
    topic_pages,
)
from mqproof.impl.console.rendering import render
from mqproof.impl.console.request_guard import RequestGuard
from mqproof.impl.console.visit import Console, Visit
from mqproof.impl.console.web_sessions import SESSION_S, WebSession

PAGE_S: Final = 25.0
"""How long a page may take."""
FORM_S: Final = 10.0
"""How long a browser may take to send a form."""
PAGES_AT_ONCE: Final = 16
_STATIC: Final = Path(__file__).parent / "static"
_STATIC_AGE: Final = {"Cache-Control": "max-age=300"}


@dataclass(frozen=True, slots=True)
class Change:
    """An address of a form that changes the cluster. `section` is that of its pages."""

    page: Callable[[Visit], Awaitable[Redirect]]
    section: str


PAGES: Final[dict[str, Callable[[Visit], Awaitable[Page]]]] = {
    "/": dashboard_page.dashboard,
    "/cluster": cluster_pages.cluster,
    "/broker": cluster_pages.broker,
    "/topics": topic_pages.topic_list,
    "/topic": topic_pages.topic,
    "/consumers": consumer_pages.consumer_list,
    "/consumer": consumer_pages.consumer,
    "/client": consumer_pages.member,
    "/dead-letters": dead_letter_pages.dead_letters,
    "/producers": producer_page.producers,
    "/messages": message_pages.message_list,
    "/message": message_pages.message,
    "/accounts": account_pages.account_list,
    "/operations": operations_page.operations,
}
"""The pages that only read."""

CHANGES: Final[dict[str, Change]] = {
    "/topic/save": Change(topic_pages.save, "/topics"),
    "/topic/send": Change(topic_pages.send, "/topics"),
    "/topic/delete": Change(topic_pages.delete, "/topics"),
    "/consumer/save": Change(consumer_pages.save, "/consumers"),
    "/consumer/delete": Change(consumer_pages.delete, "/consumers"),
    "/consumer/reset": Change(offset_forms.reset, "/consumers"),
    "/dead-letters/resend": Change(dead_letter_pages.resend, "/consumers"),
    "/dead-letters/resend-all": Change(dead_letter_pages.resend_all, "/consumers"),
    "/message/resend": Change(message_pages.resend, "/messages"),
    "/message/consume": Change(message_pages.consume, "/messages"),
    "/accounts/user": Change(account_pages.save_user, "/accounts"),
    "/accounts/delete-user": Change(account_pages.delete_user, "/accounts"),
    "/accounts/permit": Change(account_pages.permit, "/accounts"),
    "/accounts/withdraw": Change(account_pages.withdraw, "/accounts"),
    "/operations/permit": Change(operations_page.permit, "/operations"),
    "/operations/clean": Change(operations_page.clean, "/operations"),
    "/operations/setting": Change(operations_page.change_setting, "/operations"),
}
"""The forms that change the cluster."""


def create_app(console: Console) -> Starlette:
    """Return the ASGI application of a console."""
    site = _Site(console)
    routes = [
        *(Route(path, site.reading(path), methods=["GET"]) for path in PAGES),
        *(Route(path, site.changing(path), methods=["POST"]) for path in CHANGES),
        Route("/login", site.show_login, methods=["GET"]),
        Route("/login", site.login, methods=["POST"]),
        Route("/logout", site.logout, methods=["POST"]),
        Route("/console.css", _static("console.css")),
        Route("/favicon.svg", _static("favicon.svg")),
        Route("/healthz", _healthy),
    ]
    names = (*console.config.allowed_hosts, console.config.host)
    guard = Middleware(RequestGuard, allowed_hosts=names)
    return Starlette(routes=routes, middleware=[guard], exception_handlers={HTTPException: site.http_error})


class _Site:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._room = asyncio.Semaphore(PAGES_AT_ONCE)
        self._secure = console.config.certificate is not None

    def reading(self, path: str) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint of a page."""

        async def endpoint(request: Request) -> Response:
            session = self._session(request)

            async def answer() -> Answer:
                if refused := await self._refused(session, "/login"):
                    return refused
                return await PAGES[path](self._visit(session, parse_values(request.url.query)))

            return self._response(request, session, await self._guarded(answer, _section(path)))

        return endpoint

    def changing(self, path: str) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint of a form."""
        change = CHANGES[path]

        async def endpoint(request: Request) -> Response:
            session = self._session(request)

            async def answer() -> Answer:
                values = await self._form(request, session)
                if refused := await self._refused(session, "/login"):
                    return refused
                if not self._console.config.allow_changes:
                    text = "This console is read-only. Start it with --allow-changes to change the cluster."
                    return Page("Not allowed", change.section, [Note("bad", text)], status=403)
                return await change.page(self._visit(session, values))

            return self._response(request, session, await self._guarded(answer, change.section))

        return endpoint

    async def show_login(self, request: Request) -> Response:
        session = self._session(request)

        async def answer() -> Answer:
            if session.account or not await self._console.needs_login():
                return Redirect("/")
            return await login_page.login_form(self._visit(session, FormValues()))

        return self._response(request, session, await self._guarded(answer, ""))

    async def login(self, request: Request) -> Response:
        session = new = self._session(request)

        async def answer() -> Answer:
            nonlocal new
            values = await self._form(request, session)
            found = await login_page.check(self._visit(session, values))
            if isinstance(found, Page):
                return found
            self._console.sessions.end(session.id)
            # Another id: a client that knew the old one gains nothing.
            new = self._console.sessions.new(found)
            return Redirect("/")

        found = await self._guarded(answer, "")
        return self._response(request, new, found)

    async def logout(self, request: Request) -> Response:
        session = new = self._session(request)

        async def answer() -> Answer:
            nonlocal new
            await self._form(request, session)
            self._console.sessions.end(session.id)
            new = self._console.sessions.new()
            return Redirect("/login", "good", "You are logged out.")

        found = await self._guarded(answer, "")
        return self._response(request, new, found)

    async def http_error(self, request: Request, error: Exception) -> Response:
        """Return the page for an address or a method that does not exist."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        text = "There is no such page." if status == 404 else "This address does not accept the request."
        session = self._session(request)
        return self._response(request, session, Page("Not found", "", [Note("warn", text)], status=status))

    async def _refused(self, session: WebSession, login: str) -> Redirect | None:
        """Return the way to the login, for a session that needs one."""
        if session.account is None and await self._console.needs_login():
            return Redirect(login)
        return None

    def _session(self, request: Request) -> WebSession:
        known = self._console.sessions.read(request.cookies.get(self._cookie(request), ""))
        return known or self._console.sessions.new()

    def _cookie(self, request: Request) -> str:
        """Return the name of the cookie. Browsers send the cookies of a host to all its ports."""
        port = (request.scope.get("server") or ("", 0))[1]
        return f"{'__Host-' if self._secure else ''}mqproof_console_{port}"

    def _visit(self, session: WebSession, values: FormValues) -> Visit:
        config = self._console.config
        account = session.account if config.needs_login else config.account
        return Visit(self._console, session, values, account)

    async def _form(self, request: Request, session: WebSession) -> FormValues:
        """Return the values of the form. Raises FormError: it is too large, or not a form of this session."""
        body = bytearray()
        async with asyncio.timeout(FORM_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > FORM_BYTES_MAX:
                    raise FormError(f"the form has more than {FORM_BYTES_MAX} bytes")
        try:
            values = parse_values(body.decode("ascii"))
        except UnicodeDecodeError:
            raise FormError("the form is not URL-encoded") from None
        if not self._console.sessions.is_form_token(session, values.text("form_token")):
            raise FormError("the form is not of this session, or has expired: load its page again")
        return values

    async def _guarded(self, answer: Callable[[], Awaitable[Answer]], section: str) -> Answer:
        """Return the answer, in time, or the page of its failure."""
        try:
            async with asyncio.timeout(PAGE_S), self._room:
                return await answer()
        except FormError as error:
            return _problem("Wrong value", section, str(error), 400)
        except MessageError as error:
            return _problem("This message cannot be sent", section, str(error), 400)
        except TimeoutError:
            return _problem(
                "No answer in time", section, f"The cluster did not answer in {PAGE_S:.0f} s.", 504
            )
        except UnreachableError as error:
            return _unreachable(section, error)
        except NoRouteError as error:
            return _problem("Not found", section, str(error), 404)
        except RefusalError as error:
            return _problem("A server refused the request", section, str(error), 403)
        except ClientError as error:
            return _problem("The request failed", section, str(error), 502)

    def _response(self, request: Request, session: WebSession, answer: Answer) -> Response:
        sessions = self._console.sessions
        response: Response
        if isinstance(answer, Redirect):
            if answer.notice:
                sessions.leave_notice(session, answer.tone, answer.notice)
            response = RedirectResponse(answer.to, 303)
        else:
            response = HTMLResponse(self._html(session, answer), answer.status, answer.headers)
            if answer.refresh_s:
                response.headers["Refresh"] = str(answer.refresh_s)
        cookie = sessions.cookie(session)
        name = self._cookie(request)
        if request.cookies.get(name) != cookie:
            response.set_cookie(
                name,
                cookie,
                SESSION_S,
                path="/",
                secure=self._secure,
                httponly=True,
                samesite="strict",
            )
        return response

    def _html(self, session: WebSession, page: Page) -> str:
        config, sessions = self._console.config, self._console.sessions
        return render(
            page,
            account=session.account.access_key if session.account else "",
            allow_changes=config.allow_changes,
            form_token=sessions.form_token(session),
            name_servers=_shown_name_servers(self._console),
            notice=sessions.take_notice(session),
            now=times.show(int(self._console.now_s() * 1000))[:19],
            show_navigation=bool(page.section) or page.status == 404,
            time_zone=time.strftime("%Z (UTC%z)"),
            version=version("mqproof"),
        )


def _section(path: str) -> str:
    """Return the section of the navigation that a page belongs to."""
    return {
        "/broker": "/cluster",
        "/topic": "/topics",
        "/consumer": "/consumers",
        "/client": "/consumers",
        "/dead-letters": "/consumers",
        "/message": "/messages",
    }.get(path, path)


def _problem(title: str, section: str, text: str, status: int) -> Page:
    sentence = f"{text[:1].upper()}{text[1:]}".removesuffix(".") + "."
    return Page(title, section, [Note("bad", sentence)], status=status)


def _unreachable(section: str, error: UnreachableError) -> Page:
    text = f"{error}. The page works again as soon as a server answers: reload it."
    advice = "Check that the name server and the brokers run, and that this machine reaches their ports."
    page = _problem("The cluster does not answer", section, text, 503)
    return Page(
        page.title, section, [*page.parts, Note("quiet", advice)], status=503, headers={"Retry-After": "5"}
    )


def _shown_name_servers(console: Console) -> str:
    known = console.config.name_servers
    return ";".join(map(str, known)) if isinstance(known, list | tuple) else str(known)


def _static(name: str) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:  # noqa: ARG001  # the signature is starlette's
        return FileResponse(_STATIC / name, headers=_STATIC_AGE)

    return endpoint


async def _healthy(request: Request) -> Response:  # noqa: ARG001  # the signature is starlette's
    return PlainTextResponse("ok\n")
