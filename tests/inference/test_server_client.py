"""Answers over HTTP that are too large, too deep, compressed or elsewhere: an error of the server, in little memory."""

import asyncio
import json
import threading
import tracemalloc
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from reasoner.inference.server_client import ServerError, new_client, request_json

LIMIT = 2**20 + 10 * 2**10  # of an answer with 10 tokens


def of_size(number):
    return b'{"a":"' + b"a" * (number - 8) + b'"}'


ANSWERS = {  # status, headers, body
    "/good": (200, {}, b'{"a": 1}'),
    "/largest": (200, {}, of_size(LIMIT)),
    "/larger": (200, {}, of_size(LIMIT + 1)),
    "/large error": (500, {}, b"x" * (LIMIT + 1)),
    "/gzip": (200, {"Content-Encoding": "gzip"}, zlib.compress(b'{"a": 1}', wbits=31)),
    "/brotli": (200, {"Content-Encoding": "br"}, b"\x0b\x02\x80{}\x03"),
    "/twice": (200, {"Content-Encoding": "gzip, gzip"}, zlib.compress(zlib.compress(b"{}", wbits=31), wbits=31)),
    "/no gzip": (200, {"Content-Encoding": "gzip"}, b"{}"),
    "/brackets": (200, {}, b"[" * 200_000),
    "/error with brackets": (500, {}, b"[" * 200_000),
    "/digits": (200, {}, b'{"a": ' + b"9" * 5000 + b"}"),
    "/list": (200, {}, b"[1]"),
    "/redirect": (307, {"Location": "http://elsewhere/"}, b""),
    "/empty": (200, {}, b""),
}


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path.replace("%20", " ")
        status, headers, body = ANSWERS.get(path, (200, {"Content-Encoding": "gzip"}, None))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body) if body is not None else self._send_bomb()

    def _send_bomb(self):
        """300 MiB of spaces in 0.3 MiB, as long as the client reads."""
        packer = zlib.compressobj(wbits=31)
        try:
            for _ in range(300):
                self.wfile.write(packer.compress(b" " * 2**20) + packer.flush(zlib.Z_SYNC_FLUSH))
        except OSError:
            pass


@pytest.fixture(scope="module")
def url():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def ask(url, path):
    async def request():
        async with new_client("a token of the servers") as client:
            return await request_json(client, "POST", url + path, {}, seconds=30, what="it", num_tokens=10)

    return asyncio.run(request())


def test_answer_up_to_the_limit_is_read_compressed_or_not(url):
    assert ask(url, "/good") == ask(url, "/gzip") == {"a": 1} and ask(url, "/empty") == {}
    assert len(json.dumps(ask(url, "/largest"), separators=(",", ":"))) == LIMIT


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/larger", "it: the answer has more than 1.01 MiB"), ("/large error", "it: the answer has more than 1.01 MiB"),
        ("/brotli", "it: the answer is compressed as 'br'"), ("/twice", "it: the answer is compressed as 'gzip, gzip'"),
        ("/no gzip", "it: "), ("/brackets", r"it: the answer is not JSON: b'\[\["),
        ("/error with brackets", r"it: status 500: \[\["), ("/digits", "it: the answer is not JSON"),
        ("/list", "it: the answer is not a JSON object"),
        ("/redirect", r"it: redirected to http://elsewhere/ \(status 307\)"),
    ],
)  # fmt: skip
def test_answer_that_is_none_is_a_fault_of_the_server(url, path, message):
    with pytest.raises(ServerError, match=message) as error:
        ask(url, path)
    assert len(str(error.value)) < 500


def test_answer_that_unpacks_to_300_mib_is_not_unpacked(url):
    tracemalloc.start()
    try:
        with pytest.raises(ServerError, match=r"more than 1\.01 MiB"):
            ask(url, "/bomb")
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()
