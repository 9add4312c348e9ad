"""Machine code is loaded only from files and folders that nobody else can have written."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import mlirml as ml
from mlirml.cli import main
from mlirml.core import private_folder
from mlirml.core.private_folder import Untrusted
from mlirml.driver import cache
from mlirml.errors import CacheWarning
from mlirml.runtime import Artifact, Buffer

ENTRIES = [("ir", "0123"), ("target", "cpu")]
NAME = cache.key_of(ENTRIES) + ".mlirml"
ARTIFACT = Artifact(b"\x7fELF object\n\x00", "entry", (Buffer("f64", (3,)),), (Buffer("bool", ()),), 64)
STRANGER = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with one entry, of a process that has not warned yet."""
    path = tmp_path / "above" / "cache"
    monkeypatch.setattr(ml.config, "cache_dir", str(path))
    monkeypatch.setattr(cache, "_warned", False)
    cache.store(ENTRIES, ARTIFACT)
    assert cache.load(ENTRIES) == ARTIFACT
    return path


def made_anew(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / NAME).unlink()
        make(folder / NAME)

    return change


def link_to(blob_of: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        os.rename(folder / NAME, folder.parent / blob_of)
        os.symlink(folder.parent / blob_of, folder / NAME)

    return change


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        previous = os.getcwd()
        os.chdir(path.parent)  # paths of sockets are short
        try:
            server.bind(path.name[:40])
            os.rename(path.name[:40], path.name)
        finally:
            os.chdir(previous)


UNTRUSTED: dict[str, tuple[Callable[[Path], None], str]] = {
    "folder of all": (lambda f: f.chmod(0o777), "writable by other users (mode 0777)"),
    "folder of the group": (lambda f: f.chmod(0o770), "writable by other users (mode 0770)"),
    "sticky folder": (lambda f: f.chmod(0o1777), "writable by other users (mode 1777)"),
    "file of all": (lambda f: (f / NAME).chmod(0o666), "writable by other users (mode 0666)"),
    "file of the group": (lambda f: (f / NAME).chmod(0o620), "writable by other users (mode 0620)"),
    "pipe": (made_anew(os.mkfifo), "is no regular file"),
    "folder as file": (made_anew(os.mkdir), "is no regular file"),
    "socket": (made_anew(make_socket), "cannot be opened"),
    "link": (link_to("elsewhere"), "cannot be opened"),
    "dangling link": (made_anew(lambda path: os.symlink("nowhere", path)), "cannot be opened"),
}
OF_OTHERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "folder": (lambda f: os.chown(f, STRANGER, -1), f"belongs to user {STRANGER}"),
    "file": (lambda f: os.chown(f / NAME, STRANGER, -1), f"belongs to user {STRANGER}"),
}


def check_untrusted(folder: Path, change: Callable[[Path], None], reason: str) -> None:
    change(folder)
    with pytest.warns(CacheWarning) as caught:
        assert cache.load(ENTRIES) is None
    assert len(caught) == 1
    assert reason in str(caught[0].message) and "SECURITY.md" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.load(ENTRIES) is None, "it warns once"


@pytest.mark.parametrize("change, reason", UNTRUSTED.values(), ids=UNTRUSTED)
def test_what_others_may_have_written_is_not_loaded(folder: Path, change: Callable[[Path], None], reason: str) -> None:
    check_untrusted(folder, change, reason)


@as_root
@pytest.mark.parametrize("change, reason", OF_OTHERS.values(), ids=OF_OTHERS)
def test_what_others_own_is_not_loaded(folder: Path, change: Callable[[Path], None], reason: str) -> None:
    check_untrusted(folder, change, reason)


def test_a_pipe_in_the_place_of_an_entry_is_replaced(folder: Path) -> None:
    (folder / NAME).unlink()
    os.mkfifo(folder / NAME)
    with pytest.warns(CacheWarning):
        assert cache.load(ENTRIES) is None
    cache.store(ENTRIES, ARTIFACT)
    assert cache.load(ENTRIES) == ARTIFACT


def test_nothing_is_written_into_an_untrusted_folder(folder: Path) -> None:
    folder.chmod(0o777)
    with pytest.warns(CacheWarning, match="writable by other users"):
        cache.store([("ir", "other")], ARTIFACT)
    assert [path.name for path in folder.iterdir()] == [NAME]


def test_a_link_of_the_user_leads_to_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = folder.parent / "link"
    link.symlink_to(folder)
    monkeypatch.setattr(ml.config, "cache_dir", str(link))
    assert cache.load(ENTRIES) == ARTIFACT
    assert [entry.path.name for entry in cache.listing()] == [NAME]


@as_root
def test_a_link_of_another_user_does_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = folder.parent / "link"
    link.symlink_to(folder)
    os.lchown(link, STRANGER, -1)
    monkeypatch.setattr(ml.config, "cache_dir", str(link))
    with pytest.warns(CacheWarning, match=f"is a link of user {STRANGER}"):
        assert cache.load(ENTRIES) is None


def test_a_folder_put_in_the_place_of_one_that_is_open_is_not_used(folder: Path) -> None:
    with private_folder.opened(str(folder)) as opened:
        folder.rename(folder.parent / "old")
        folder.mkdir(mode=0o777)
        (folder / NAME).write_bytes(b"of somebody else")
        assert opened.read(NAME).endswith(ARTIFACT.to_bytes())
        opened.write("new", b"content")
        opened.remove(NAME)
    assert (folder / NAME).exists() and not (folder / "new").exists()
    assert sorted(path.name for path in (folder.parent / "old").iterdir()) == ["new"]


PROGRAM = """
import os, sys
os.umask(int(sys.argv[1], 8))
import numpy as np
import mlirml as ml
for _ in range(2):
    fn = ml.compile(lambda x: x + 1)
    fn(np.ones(3))
print("loaded from the disk cache" in fn.explain())
"""


@pytest.mark.parametrize("umask", ["000", "022", "277", "777"])
def test_folders_and_files_are_private_whatever_the_umask(tmp_path: Path, umask: str) -> None:
    environment = {**os.environ, "MLIRML_CACHE_DIR": str(tmp_path / "a" / "b" / "cache")}
    command = [sys.executable, "-c", PROGRAM, umask]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert (done.stdout, done.stderr) == ("True\n", "")
    paths = [tmp_path / "a", tmp_path / "a/b", tmp_path / "a/b/cache"]
    assert [oct(path.stat().st_mode & 0o7777) for path in paths] == ["0o700"] * 3
    assert [oct(path.stat().st_mode & 0o7777) for path in paths[-1].iterdir()] == ["0o600"]


def test_files_of_killed_writers_are_counted_and_removed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, age in (("old", 10_000), ("older", 20_000), ("young", 0)):
        path = folder / f".new-{name}"
        path.write_bytes(bytes(512))
        then = path.stat().st_mtime - age
        os.utime(path, (then, then))
    assert main(["cache", "list"]) == 0
    assert "3 files of writers that have not finished, 1.5 kB" in " ".join(capsys.readouterr().out.split())
    assert main(["cache", "check"]) == 0
    assert len(cache.unfinished()) == 3
    assert main(["cache", "check", "--fix"]) == 0
    assert "removed 2 files of writers that were killed" in capsys.readouterr().out
    assert [path.name for path, _ in cache.unfinished()] == [".new-young"]


def test_storing_removes_files_of_killed_writers(folder: Path) -> None:
    (folder / ".new-old").write_bytes(b"half")
    os.utime(folder / ".new-old", (5, 5))
    (folder / ".new-young").write_bytes(b"half")
    for number in range(200):  # one store in sixteen looks for them
        cache.store([("ir", f"another {number}")], ARTIFACT)
    assert [path.name for path, _ in cache.unfinished()] == [".new-young"]


@pytest.mark.parametrize("action", ["list", "check", "clear"])
def test_the_command_says_that_a_folder_is_not_trusted(
    folder: Path, action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.chmod(0o777)
    assert main(["cache", action]) == 1
    assert capsys.readouterr().err == (
        f"mlirml: the cache is not used: {folder} is writable by other users (mode 0777)\n"
    )
    with pytest.raises(Untrusted):
        list(cache.listing())
