"""Clients of the endpoints: `gradio_client` fetches rollouts from a served dashboard."""

import json

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError, AuthenticationError

from app.api import QUERIES
from tests.app.browsing import served
from tests.app.library_of import asking, write_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("library")
    write_run(path / "runs" / "a", steps=3, written=3)
    (path / "evals").mkdir()
    return path


@pytest.fixture(scope="module")
def url(folder):
    with served(folder / "runs", folder / "evals", "--auth", "who:pass:word") as address:
        yield address


@pytest.fixture(scope="module")
def client(url):
    login = {"auth": ("who", "pass:word")}
    connection = Client(url, httpx_kwargs=login, verbose=False, analytics_enabled=False)
    yield connection
    connection.close()


def test_every_query_of_the_pages_is_a_named_endpoint(client):
    endpoints = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert endpoints.keys() == {f"/{name}" for name in (*QUERIES, "chat")}
    assert {len(endpoint["returns"]) for endpoint in endpoints.values()} == {1}
    parameters = {row["parameter_name"]: row for row in endpoints["/rollouts"]["parameters"]}
    assert list(parameters) == ["run", "where", "order", "offset", "limit", "near"]
    assert not parameters["run"]["parameter_has_default"] and parameters["order"]["parameter_default"] == "step"


def test_an_endpoint_replies_what_the_page_gets(client, folder):
    for ask in asking(folder):
        for query, values in {
            "rollouts": {"run": "a", "where": {"correct": "yes"}, "limit": 4},
            "group": {"run": "a", "step": 1, "group": 2},
            "reflection": {"run": "a"},
            "evals": {},
        }.items():
            assert client.predict(api_name=f"/{query}", **values) == json.loads(json.dumps(ask(query, **values)))


@pytest.mark.parametrize(
    ("query", "values", "message"),
    [
        ("rollout", {"run": "a", "name": "99.0.0"}, "has no rollout 99.0.0"),
        ("chat", {"question": " "}, "there is no question"),
    ],
)
def test_an_invalid_call_is_an_error_with_the_reason(client, query, values, message):
    with pytest.raises(AppError, match=message):
        client.predict(api_name=f"/{query}", **values)


def test_a_client_without_the_password_is_refused(url):
    with pytest.raises(AuthenticationError, match="credentials were not provided"):
        Client(url, verbose=False, analytics_enabled=False)
