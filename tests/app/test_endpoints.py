"""Clients of the endpoints: `gradio_client` and the Model Context Protocol fetch rollouts from a served dashboard."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError, AuthenticationError

from app.api import QUERIES
from tests.app.browsing import served
from tests.app.library_of import asking, num_correct, rows_of, write_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("library")
    write_run(path / "runs" / "a", steps=3, written=3)
    (path / "evals").mkdir()
    return path


@pytest.fixture(scope="module")
def url(folder):
    with served(folder / "runs", folder / "evals", "--mcp", "--auth", "who:pass:word") as address:
        yield address


@pytest.fixture(scope="module")
def client(url):
    login = {"auth": ("who", "pass:word")}
    connection = Client(url, httpx_kwargs=login, verbose=False, analytics_enabled=False)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def rollouts(folder):
    return rows_of(folder / "runs" / "a")


def test_every_query_of_the_pages_is_a_named_endpoint(client):
    endpoints = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert endpoints.keys() == {f"/{name}" for name in (*QUERIES, "chat")}
    parameters = {row["parameter_name"]: row for row in endpoints["/rollouts"]["parameters"]}
    assert list(parameters) == ["run", "where", "order", "offset", "limit", "near"]
    assert not parameters["run"]["parameter_has_default"] and parameters["order"]["parameter_default"] == "step"


def test_gradio_client_fetches_a_rollout(client, rollouts):
    reply = client.predict("a", rollouts[0]["name"], api_name="/rollout")
    assert (reply["completion"], reply["reward"]) == (rollouts[0]["completion"], rollouts[0]["reward"])


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
        ("rollout", {"run": "../a", "name": "0.0.0"}, "no run '../a'"),
        ("rollouts", {"run": "a", "where": {"colour": "red"}}, "unknown filter 'colour'"),
        ("rollouts", {"run": 3}, "run is 3; Input should be a valid string"),
        ("chat", {"question": " "}, "there is no question"),
    ],
)
def test_an_invalid_call_is_an_error_with_the_reason(client, query, values, message):
    with pytest.raises(AppError, match=message):
        client.predict(api_name=f"/{query}", **values)


def test_a_client_without_the_password_is_refused(url):
    with pytest.raises(AuthenticationError, match="credentials were not provided"):
        Client(url, verbose=False, analytics_enabled=False)


# ------------------------------------------------------------------------------------------------- MCP


@pytest.fixture(scope="module")
def open_url(folder):
    with served(folder / "runs", folder / "evals", "--mcp") as address:
        yield address


def call(url, *calls):
    """The tools of the server, and the results of calls: (is an error, text)."""
    mcp = pytest.importorskip("mcp")

    async def run():
        async with mcp.Client(f"{url}/mcp") as connection:
            tools = (await connection.list_tools()).tools
            results = [await connection.call_tool(name, values) for name, values in calls]
            return tools, [(result.is_error, result.content[0].text) for result in results]

    with ThreadPoolExecutor(1) as thread:  # in this one a browser may keep an event loop running
        return thread.submit(asyncio.run, run()).result()


def test_the_tools_for_agents_are_read_only(open_url):
    tools, _ = call(open_url)
    names = ["runs", "overview", "rollouts", "rollout", "problems", "problem", "evals", "evaluation"]
    assert [tool.name for tool in tools] == names
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools)


def test_an_agent_finds_and_fetches_a_rollout(open_url, rollouts):
    search = ("rollouts", {"run": "a", "where": {"correct": "yes"}, "limit": 2})
    get = ("rollout", {"run": "a", "name": rollouts[5]["name"]})
    about = [("problems", {"run": "a"}), ("problem", {"run": "a", "id": rollouts[5]["problem_id"]})]
    _, replies = call(open_url, ("runs", {}), ("overview", {"run": "a"}), search, get, ("evals", {}), *about)
    assert [is_error for is_error, _ in replies] == [False] * 7
    listed, metrics, page, one, evaluations, problems, problem = (json.loads(text) for _, text in replies)
    assert problems["exposures"] and problem["question"] == rollouts[5]["question"] and problem["neighbours"]
    assert listed["runs"][0]["name"] == "a" and [line["step"] for line in metrics["metrics"]] == [0, 1, 2]
    assert page["total"] == num_correct(rollouts) and len(page["rows"]) == 2
    assert (one["completion"], one["tokens"], evaluations["rows"]) == (rollouts[5]["completion"], None, [])


def test_an_agent_gets_the_reason_of_an_error(open_url):
    _, replies = call(open_url, ("rollout", {"run": "a", "name": "99.0.0"}), ("evaluation", {"name": "none"}))
    assert [is_error for is_error, _ in replies] == [True, True]
    assert "has no rollout 99.0.0" in replies[0][1] and "no evaluation 'none'" in replies[1][1]
