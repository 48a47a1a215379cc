"""A folder of patches: what they change, and what is refused."""

from pathlib import Path

import pytest

from mqproof.conformance.mutation.loading import source_of
from mqproof.conformance.mutation.patches import PatchError, read

_MODULE = "mqproof.impl.broker.delayed"
_FILE = "impl/broker/delayed.py"


def _diff(file: str, number: int, lines: list[str], replacement: str) -> str:
    head = f"--- a/{file}\n+++ b/{file}\n@@ -{number - 1},3 +{number - 1},3 @@\n"
    before, old, after = lines[number - 2 : number + 1]
    return f"{head} {before}\n-{old}\n+{replacement}\n {after}\n"


def test_a_patch_is_a_mutant_with_its_changed_lines(tmp_path: Path) -> None:
    lines = source_of(_MODULE).read_text(encoding="utf-8").splitlines()
    number = next(at for at, line in enumerate(lines, 1) if line.startswith("import "))
    (tmp_path / "b.patch").write_text(_diff(_FILE, number, lines, "import gc"))
    (tmp_path / "a.patch").write_text(_diff(_FILE, number + 1, lines, "import os"))
    (tmp_path / "notes.txt").write_text("no patch")
    first, second = read(tmp_path)
    assert (first.mutant.before, second.mutant.before) == ("a", "b")
    assert first.mutant.number != second.mutant.number
    assert (second.mutant.module, second.mutant.operator, second.mutant.after) == (
        _MODULE, "patch", "import gc",
    )  # fmt: skip
    assert second.lines == {_MODULE: {number}}
    assert second.sources[_MODULE].splitlines() == [*lines[: number - 1], "import gc", *lines[number:]]


def test_a_patch_may_change_a_folder_that_the_samples_leave_out(tmp_path: Path) -> None:
    lines = source_of("mqproof.impl.access.acl").read_text(encoding="utf-8").splitlines()
    (tmp_path / "a.patch").write_text(_diff("impl/access/acl.py", 3, lines, "import gc"))
    (patch,) = read(tmp_path)
    assert list(patch.sources) == ["mqproof.impl.access.acl"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no diff", "changes nothing"),
        (
            "--- a/impl/broker/no.py\n+++ b/impl/broker/no.py\n@@ -1 +1 @@\n-a\n+b\n",
            "changes impl/broker/no.py",
        ),
        (f"--- a/{_FILE}\n+++ b/{_FILE}\n@@ -1 +1 @@\n-not there\n+b\n", "does not apply"),
    ],
)
def test_a_patch_that_cannot_be_used_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.patch").write_text(text)
    with pytest.raises(PatchError, match=message):
        read(tmp_path)


def test_a_folder_without_patches_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PatchError, match=r"no file ends in \.patch"):
        read(tmp_path)
