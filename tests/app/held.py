"""Requests of a page whose replies come when a test releases them."""

from __future__ import annotations

from typing import Any

# In the page: the replies to these queries are held back until the test releases them, by the number of the request.
HOLD = """queries => {
    const send = window.fetch;
    window.held = [];
    window.fetch = async (url, options) => {
        const query = url.split('/ask/')[1];
        if (!queries.includes(query)) return send(url, options);
        const one = {query, body: JSON.parse(options.body)};
        window.held.push(one);
        const released = new Promise(release => { one.release = release; });
        const reply = await send(url, options), text = await reply.text();
        await released;
        return new Response(text, {status: reply.status, headers: reply.headers});
    };
}"""
RELEASE = "async number => { window.held[number].release(); await new Promise(done => setTimeout(done, 100)); }"
STOP_POLLING = "Object.defineProperty(document, 'hidden', {get: () => true})"


class Held:
    """The requests of a page to some queries; a reply comes when it is released."""

    def __init__(self, page: Any, *queries: str, polling: bool = False) -> None:
        self.page = page
        if not polling:
            page.evaluate(STOP_POLLING)
        page.evaluate(HOLD, queries)

    def queries(self) -> list[str]:
        """Of the requests so far."""
        return self.page.evaluate("window.held.map(one => one.query)")

    def wait(self, number: int) -> None:
        """Wait until so many requests were sent."""
        self.page.wait_for_function("number => window.held.length >= number", arg=number)

    def release(self, number: int) -> None:
        """Let a reply come; returns when the page has had time to show it."""
        self.page.evaluate(RELEASE, number)

    def values(self, name: str) -> list[Any]:
        """An argument of the requests so far, in their order."""
        return self.page.evaluate("name => window.held.map(one => one.body[name])", name)
