"""Operations: the name servers, the console itself, and changes of brokers."""

from typing import Final

from mqproof.impl.admin import brokers, name_servers
from mqproof.impl.admin.admin import Admin
from mqproof.impl.admin.brokers import BrokerState
from mqproof.impl.client.model import ClientError
from mqproof.impl.console.page_parts import (
    Cell,
    Facts,
    Field,
    Form,
    Note,
    Page,
    Part,
    Redirect,
    Table,
    columns,
)
from mqproof.impl.console.sampler import PAUSE_S
from mqproof.impl.console.visit import Visit
from mqproof.impl.remoting.channel import RemotingError
from mqproof.impl.remoting.codes import RequestCode
from mqproof.impl.runtime.network import Address

_CLEANINGS: Final = {
    "queues": (RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, "expired entries of consume queues"),
    "log": (RequestCode.DELETE_EXPIRED_COMMITLOG, "expired files of the commit log"),
    "topics": (RequestCode.CLEAN_UNUSED_TOPIC, "queues of topics that the broker no longer has"),
}
_PERMITS: Final = {"wipe": name_servers.wipe_write, "add": name_servers.add_write}


async def operations(visit: Visit) -> Page:
    """Return the name servers, what the console may do, and the forms that change brokers."""
    async with visit.admin() as admin:
        table = await _name_servers(admin)
        states: list[BrokerState] = []
        problem: list[Part] = []
        try:
            states = await brokers.cluster_states(admin)
        except ClientError as error:
            problem = [Note("bad", f"The brokers are not known: {error}")]
    parts: list[Part] = [*problem, table, _console(visit)]
    if visit.allows_changes:
        parts += _forms(states)
    else:
        parts.append(
            Note("quiet", "This console is read-only. Start it with --allow-changes to change the cluster.")
        )
    return Page("Operations", "/operations", parts)


async def permit(visit: Visit) -> Redirect:
    """Remove the write permission of a broker at all name servers, or restore it."""
    name = visit.values.required("broker", most=255)
    change = visit.values.choice("change", _PERMITS, "wipe")
    async with visit.admin() as admin:
        counts = await change(admin, name)
    verb = "no longer" if change is name_servers.wipe_write else "again"
    text = ", ".join(f"{count} topics at {address}" for address, count in counts.items())
    return Redirect("/operations", "good", f"Producers {verb} send to {name}: {text}.")


async def clean(visit: Visit) -> Redirect:
    """Have one broker delete what has expired."""
    broker = visit.values.address("broker")
    code, what = visit.values.choice("what", _CLEANINGS, "queues")
    async with visit.admin() as admin:
        await _require_known(admin, broker)
        await brokers.clean(admin, [broker], code)
    return Redirect("/operations", "good", f"{broker} deletes {what}.")


async def change_setting(visit: Visit) -> Redirect:
    """Change one setting of a running broker."""
    broker, key = visit.values.address("broker"), visit.values.required("key", most=127)
    value = visit.values.text("value")
    async with visit.admin() as admin:
        await _require_known(admin, broker)
        await brokers.update_config(admin, [broker], key, value)
    return Redirect("/operations", "good", f"{broker}: {key} is {value!r} now.")


async def _require_known(admin: Admin, broker: Address) -> None:
    """Check that the name server knows the broker: the console connects to no other address."""
    if not await admin.names_at([broker]):
        raise ClientError(f"the name server knows no broker at {broker}")


async def _name_servers(admin: Admin) -> Table:
    rows = []
    try:
        addresses = sorted(await admin.session.name_servers.known())
    except RemotingError as error:
        titles = columns("Name server", "State")
        return Table("Name servers", titles, [], f"The address server names no name server: {error}")
    for address in addresses:
        try:
            answer = await admin.ask(address, RequestCode.GET_NAMESRV_CONFIG)
            settings = brokers.properties_of(answer.body)
            state, detail = Cell("answers", tone="good"), f"{len(settings)} settings"
        except ClientError as error:
            state, detail = Cell("no answer", tone="bad"), str(error)
        rows.append((Cell(str(address), is_code=True), state, detail))
    return Table("Name servers", columns("Name server", "State", "Detail"), rows, "No name server is known.")


def _console(visit: Visit) -> Facts:
    config = visit.console.config
    sampled = config.account.access_key if config.account else "no account"
    login = "none: every client that can connect has access"
    if config.needs_login:
        login = (
            "with an account of the brokers" if visit.account else "not needed: the brokers check no accounts"
        )
    return Facts(
        "This console",
        [
            ("Changes", "allowed" if config.allow_changes else "not allowed (--allow-changes)"),
            ("Login", login),
            ("Samples", f"every {PAUSE_S:.0f} s, with {sampled}"),
            ("Listens on", f"{config.host}, {'HTTPS' if config.certificate else 'HTTP'}"),
        ],
    )


def _forms(states: list[BrokerState]) -> list[Part]:
    names = sorted({state.name for state in states})
    addresses = [
        (str(s.address), f"{s.name} ({'master' if s.id == 0 else f'slave {s.id}'}), {s.address}")
        for s in states
    ]
    broker = Field("broker", "Broker", type="select", options=addresses)
    permit_fields = [
        Field("broker", "Broker", type="select", options=[(name, name) for name in names]),
        Field(
            "change",
            "Change",
            "wipe",
            "select",
            (("wipe", "producers stop sending to it"), ("add", "producers may send to it again")),
        ),
    ]
    cleanings = [(name, f"delete {what}") for name, (_, what) in _CLEANINGS.items()]
    setting = [broker, Field("key", "Key", is_required=True, most=127), Field("value", "Value")]
    before = "Before maintenance: producers send to other brokers, consumers still read from this one."
    return [
        Form(
            "Write permission of a broker",
            "/operations/permit",
            permit_fields,
            "Change",
            note=before,
            is_folded=True,
            is_danger=True,
        ),
        Form(
            "Clean up a broker",
            "/operations/clean",
            [broker, Field("what", "What", "queues", "select", cleanings)],
            "Clean up",
            is_folded=True,
            is_danger=True,
        ),
        Form(
            "Change a setting of a broker",
            "/operations/setting",
            setting,
            "Change",
            note="The broker refuses keys that it cannot change while it runs.",
            is_folded=True,
            is_danger=True,
        ),
    ]
