"""Goal: the page of configuration keys has every key, its default with a unit, and a description."""

from docs_site import configuration
from docs_site.field_docs import defaults, field_docs
from mqproof.impl.broker import config as broker
from mqproof.impl.namesrv import config as namesrv

PAGE = configuration.page()


def test_every_configuration_key_has_a_row() -> None:
    keys = [*namesrv.OPTIONS, *(key for _, _, options in configuration.BROKER for key in options)]
    assert [key for key in keys if f"| `{key}` |" not in PAGE] == []


def test_every_key_and_every_client_setting_has_a_description() -> None:
    files = [*configuration.BROKER, ("", namesrv.NameServerConfig, namesrv.OPTIONS)]
    parts = [(part, [option.field for option in options.values()]) for _, part, options in files]
    for part, names in [*parts, *((part, list(defaults(part))) for part in configuration.CLIENT)]:
        undescribed = [name for name in names if len(configuration.meaning(part, name)) < 10]
        assert not undescribed, (part, undescribed)


def test_no_description_begins_with_the_words_the_property() -> None:
    assert "| The property " not in PAGE


def test_defaults_are_shown_in_the_units_of_the_configuration_file() -> None:
    assert "| `listenPort` | `10911` |  |" in PAGE
    assert "| `syncFlushTimeout` | `5000` ms | yes |" in PAGE
    assert "| `maxMessageSize` | `4194304` bytes | yes |" in PAGE
    assert "| `waitSecondsForService` | `45` s | yes |" in PAGE
    assert "| `fileReservedTime` | `72` |" in PAGE


def test_descriptions_use_configuration_keys_instead_of_python_fields() -> None:
    assert "`aclFile`" in PAGE
    assert "`acl_path`" not in PAGE


def test_the_keys_that_can_change_while_the_broker_runs_are_marked() -> None:
    rows = {line.split("`")[1]: line.split(" | ")[2] for line in PAGE.splitlines() if line.startswith("| `")}
    for _, _, options in configuration.BROKER:
        for key in set(options) - set(namesrv.OPTIONS):
            assert (rows[key].strip() == "yes") is (key in broker.RUNNING_KEYS), key


def test_the_string_after_a_field_is_the_description_of_the_field() -> None:
    docs = field_docs(broker.BrokerConfig)
    assert docs["broker_id"].endswith("0 is a master.")
    assert docs["store"] == ""
