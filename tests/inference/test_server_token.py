"""The token of a user: made once, in a file that nobody else can read, or in the environment."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from reasoner.cli.main import main
from reasoner.inference.server_token import VARIABLE, make_token, read_token, token_file


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)


def test_token_is_made_once_for_the_user_alone():
    with ThreadPoolExecutor(8) as threads:
        tokens = set(threads.map(lambda _: make_token(), range(8)))
    (token,) = tokens
    assert read_token() == make_token() == token and len(token) > 40
    assert token_file().stat().st_mode & 0o777 == 0o600
    assert list(token_file().parent.iterdir()) == [token_file()]


def test_token_of_the_environment_comes_first_and_no_file_is_made(monkeypatch):
    monkeypatch.setenv(VARIABLE, "a" * 20)
    assert make_token() == read_token() == "a" * 20 and not token_file().exists()


def test_trainer_without_a_token_is_told_how_to_get_one_and_one_that_others_can_read_is_refused():
    with pytest.raises(ValueError, match=rf"{token_file()} .* {VARIABLE}"):
        read_token()
    assert not token_file().exists()
    make_token()
    token_file().chmod(0o640)
    with pytest.raises(ValueError, match="chmod 600"):
        read_token()


@pytest.mark.parametrize("token", ["", "short", "a" * 20 + " b", "ä" * 20, "a" * 20 + "\nb"])
def test_token_that_is_none_is_refused_and_not_shown(monkeypatch, token):
    monkeypatch.setenv(VARIABLE, token)
    with pytest.raises(ValueError, match=f"{VARIABLE} .* 20 ") as error:
        read_token()
    assert not token or token not in str(error.value)


def test_token_without_a_place_is_an_error_that_names_the_variable(tmp_path, monkeypatch):
    (tmp_path / "reasoner").write_text("a file")
    with pytest.raises(ValueError, match=VARIABLE):
        make_token()


def test_run_on_servers_without_a_token_is_refused_before_anything_is_written(tmp_path, capsys):
    place = ["--engine.urls", "http://127.0.0.1:1", "--run.dir", str(tmp_path / "runs")]
    assert main(["train", "--dry-run", "--model", "base", *place]) == 2
    assert f"set {VARIABLE}" in capsys.readouterr().err and list(tmp_path.iterdir()) == []
