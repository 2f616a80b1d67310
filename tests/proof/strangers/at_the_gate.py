"""What a stranger sends to a gateway. Each attack says what was seen, and raises if that is wrong."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

from proof.strangers.gate import Gate
from support.waiting import wait_until

REFUSED = {400, 401, 403, 404, 405, 408, 411, 413, 414, 415, 422, 429, 431, 503}
"""Answers to what is not wanted. 500 is not among them."""
Attack = Callable[[Gate], str]
NUL = "a\x00b"
LONE = "\ud800"


def unstorable_submissions(gate: Gate) -> str:
    """Texts that a store cannot hold, hosts that no name server knows, groups without end."""
    bodies = [
        ("/searches", {"words": [NUL]}),
        ("/searches", {"words": ["g" * 5_000]}),
        ("/searches", {"words": ["milk", NUL, "eggs"]}),
        ("/sick", {"words": [NUL]}),
        ("/sick", {"words": ["x" * 200_000]}),
        ("/jobs", {"scraper": "plain", "urls": [f"http://{'h' * 5_000}.test/"]}),
        ("/jobs", {"scraper": "plain", "urls": [f"http://{'h.' * 200}test/"]}),
        ("/jobs", {"scraper": "plain", "urls": [f"http://127.0.0.1/{NUL}"]}),
        ("/jobs", {"scraper": "plain", "urls": ["http://127.0.0.1/" + "p" * 300_000]}),
        ("/jobs", {"scraper": NUL, "urls": ["http://127.0.0.1/"]}),
    ]
    seen = [gate.ask(path, body) for path, body in bodies]
    seen += [gate.ask(path, json.dumps({"words": [LONE]}).encode()) for path in ("/searches", "/sick")]
    return _none_failed(Counter(answer.status for answer in seen))


def odd_ids(gate: Gate) -> str:
    """Ids that cannot be: on every route that takes one."""
    ids = ("a%00b", "%00", "a%0A", "%FF%FE", "..%2F..", "a" * 4_000, "%ED%A0%80", "'%20OR%201=1--", "{}", "*")
    seen: Counter[int] = Counter()
    for each in ids:
        for path in (f"/jobs/{each}", f"/results/{each}", f"/jobs/{each}/items", f"/jobs/{each}/events"):
            seen[gate.ask(path).status] += 1
        seen[gate.ask(f"/jobs/{each}", method="DELETE").status] += 1
    assert seen.keys() <= REFUSED, seen
    return str(dict(seen))


def beside_the_routes(gate: Gate) -> str:
    """Paths that are nearly routes, without a key and with bodies that never end: refused before they are read."""
    sent = 0
    for path in ("/jobs%0A", "/jobs/", "//jobs", "/jobs%2F", "/JOBS", "/searches%0a", "/docs%0A", "/openapi.json%0A"):
        answer, size = _pour(gate, f"POST {path} HTTP/1.1", megabytes=8 * gate.scale)
        sent += size
        status = int(answer.split()[1]) if answer else 0
        assert status in REFUSED | {0}, (path, answer[:200])
    return f"{sent / 1e6:.0f} MB could be sent"


def _pour(gate: Gate, line: str, megabytes: int) -> tuple[bytes, int]:
    """Send a chunked body without a key until somebody has enough of it."""
    host, port = gate.address
    sent = 0
    piece = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with gate.connect(10) as connection, suppress(OSError):
        connection.sendall(f"{line}\r\nHost: {host}:{port}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        while sent < megabytes * 1_000_000:
            connection.sendall(piece)
            sent += len(piece)
            connection.setblocking(False)
            try:
                return connection.recv(65536), sent
            except BlockingIOError:
                connection.settimeout(10)
        connection.sendall(b"0\r\n\r\n")
        return connection.recv(65536), sent
    return b"", sent


def pipelined(gate: Gate) -> str:
    """One connection, requests without end, and nobody reads the answers."""
    host, port = gate.address
    requests = f"GET /x HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode() * 2_000
    sent = 0
    with ExitStack() as open_lines:
        for _ in range(3):
            line = open_lines.enter_context(gate.connect(2))
            with suppress(OSError):
                while sent < 30_000_000 * gate.scale:
                    line.sendall(requests)
                    sent += len(requests)
    return f"{sent / 1e6:.1f} MB of requests were taken"


def abandoned_polls(gate: Gate) -> str:
    """Long polls whose clients leave at once, then a stream of events for a job that waits."""
    job = gate.ask("/jobs", {"scraper": "plain", "urls": [f"http://127.0.0.1:9/{n}" for n in range(3)]}).body["job_id"]
    poll = gate.head(f"GET /results/{job}?wait=60 HTTP/1.1")
    for _ in range(2_000 * gate.scale):
        with gate.connect() as line:
            line.sendall(poll)
    stream = gate.head(f"GET /jobs/{job}/events HTTP/1.1", "Connection: close")
    with gate.connect() as line:
        line.sendall(stream)
        first = line.recv(4096)
    assert first.split()[1] in (b"200", b"503"), first
    assert gate.ask(f"/results/{job}").status == 200
    return f"then a stream answered {first.split()[1].decode()}"


def streams_without_end(gate: Gate) -> str:
    """As many streams of events as one client can open."""
    job = gate.ask("/slow", {"words": ["x"]}).body["job_id"]
    seen: Counter[int] = Counter()
    with ExitStack() as lines:
        for _ in range(200 * gate.scale):
            line = lines.enter_context(gate.connect())
            line.sendall(gate.head(f"GET /jobs/{job}/events HTTP/1.1"))
            seen[int(line.recv(4096).split()[1])] += 1
    return _none_failed(seen)


def readers_that_do_not_read(gate: Gate) -> str:
    """Large results, asked for by clients that never read them."""
    job = gate.ask("/heavy", {"words": ["x"]}).body["job_id"]

    def ended() -> str:
        status: str = gate.ask(f"/jobs/{job}").body["status"]
        return status if status in ("complete", "failed") else ""

    assert wait_until(ended, "the job has ended") == "complete"
    with ExitStack() as lines:
        for number in range(40 * gate.scale):
            line = lines.enter_context(_small_window(gate))
            path = f"/results/{job}" if number % 2 else f"/jobs/{job}/items?limit=1000"
            line.sendall(gate.head(f"GET {path} HTTP/1.1"))
        assert gate.ask("/health/live").status == 204
        whole = gate.ask(f"/results/{job}")
        assert whole.status == 200
    return f"one answer had {len(whole.raw) / 1e6:.1f} MB"


def _small_window(gate: Gate) -> socket.socket:
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.settimeout(30)
    line.connect(gate.address)
    return line


def greedy_submissions(gate: Gate) -> str:
    """Four clients at once, each with jobs of thousands of URLs."""
    urls = [f"http://127.0.0.1:9/{number}" for number in range(5_000)]

    def submit(_number: int) -> int:
        return gate.ask("/jobs", {"scraper": "plain", "urls": urls}).status

    with ThreadPoolExecutor(4) as clients:
        seen = Counter(clients.map(submit, range(8 * gate.scale)))
    return _none_failed(seen)


def slow_starts(gate: Gate) -> str:
    """Jobs whose `@start` takes seconds, more than there are threads for them."""
    with ThreadPoolExecutor(24) as clients:
        seen = Counter(clients.map(lambda _: gate.ask("/slow", {"words": ["x"]}).status, range(24 * gate.scale)))
    return _none_failed(seen)


def slow_senders(gate: Gate) -> str:
    """Heads and bodies that come byte by byte, or not at all."""
    with ExitStack() as lines:
        for number in range(300 * gate.scale):
            line = lines.enter_context(gate.connect())
            line.sendall(
                (b"GET", gate.head("POST /searches HTTP/1.1", "Content-Length: 1000")[: 40 + number % 200])[number % 2]
            )
        assert gate.ask("/health/live").status == 204
    return "those who wait are served"


def documents_that_are_odd(gate: Gate) -> str:
    """Deep, broken, doubled and enormous JSON."""
    bodies = (
        b"[" * 100_000,
        b'{"words":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"words":["\xff\xfe"]}',
        b'{"words":["\\ud800"]}',
        b'{"words":[' + b"1" * 100_000 + b"]}",
        b'{"words":["a"],"words":["b"]}',
        b'{"words":[1e999999]}',
        b"\x00" * 1_000,
        b"",
        b"null",
        b'{"words":["' + b"\\u0000" * 1_000 + b'"]}',
    )
    return _none_failed(Counter(gate.ask("/searches", body).status for body in bodies))


def bytes_below_http(gate: Gate) -> str:
    """Heads that two readers would read in two ways, and some that nobody can read."""
    host, port = gate.address
    at = f"Host: {host}:{port}"
    smuggled = "POST /searches HTTP/1.1\r\n" + at + "\r\n"
    heads = (
        smuggled + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /health/live HTTP/1.1\r\n\r\n",
        smuggled + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        smuggled + "Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        smuggled + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        smuggled + "Content-Length: -1\r\n\r\n",
        f"GET / HTTP/1.1\r\n{at}\r\n{at}\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
        f"GET / HTTP/1.1\r\n{at}\r\n" + "X-Much: 1\r\n" * 20_000 + "\r\n",
        f"GET /{'x' * 300_000} HTTP/1.1\r\n{at}\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\x00\xff\xfe\r\n\r\n",
    )
    seen: Counter[str] = Counter()
    for head in heads:
        said = gate.says(head.encode("latin-1"), timeout=10)
        for line in said.split(b"HTTP/1.1 ")[1:]:
            seen[line[:3].decode("latin-1")] += 1
    assert {int(status) for status in seen if status.isdigit()} <= REFUSED | {200}, seen
    return str(dict(seen))


def what_is_not_theirs(gate: Gate) -> str:
    """Files outside of the folder, jobs of others, keys that are none."""
    seen: Counter[int] = Counter()
    for path in ("/../shoal.db", "/%2e%2e/shoal.db", "/..%2fstrangers.py", "/static/../../etc/passwd", "/.git/config"):
        seen[gate.ask(path).status] += 1
    for key in ("", "Bearer", "Bearer \x7f", "Bearer " + "k" * 10_000, f"Basic {gate.key}"):
        seen[gate.served.ask("/jobs", Authorization=key).status] += 1
    assert seen.keys() <= REFUSED, seen
    return str(dict(seen))


def _none_failed(seen: Counter[int]) -> str:
    assert not [status for status in seen if status == 500 or status < 100], seen
    return str(dict(seen))


ON_THE_WIRE: tuple[Attack, ...] = (
    beside_the_routes,
    pipelined,
    abandoned_polls,
    streams_without_end,
    readers_that_do_not_read,
    slow_starts,
    slow_senders,
    documents_that_are_odd,
    bytes_below_http,
    what_is_not_theirs,
)
ON_THE_STORE: tuple[Attack, ...] = (unstorable_submissions, odd_ids, greedy_submissions)
