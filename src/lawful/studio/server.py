"""The server of the studio: the standard library's, on this machine alone.

Who may talk to it: it listens on 127.0.0.1; requests must name this host (a page elsewhere that points its own name here, DNS
rebinding, does not), must not come from another site (Origin, Sec-Fetch-Site), and must carry the token of this start, which
the first address brings and a cookie keeps. The page loads nothing from elsewhere, and says so to the browser
(Content-Security-Policy). Uploads are limited before they are read; names of files never become paths.
"""

from __future__ import annotations

import hmac
import json
import secrets
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from lawful.studio.laws import check, data_picture, items_of
from lawful.studio.offers import MENU, words_for
from lawful.studio.sessions import Session, Sessions
from lawful.studio.tables import Refused, read

__all__ = ["Studio", "serve"]

MEGABYTE = 2**20
UPLOAD = 50  # megabytes
WORDS = MEGABYTE  # bytes of any other request
DRAINED = 8 * MEGABYTE  # of a refused upload is read, so that the browser hears why
STATIC = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/studio.css": ("studio.css", "text/css; charset=utf-8"),
    "/studio.js": ("studio.js", "text/javascript; charset=utf-8"),
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
PICTURES = ("predictions-light", "predictions-dark", "residuals-light", "residuals-dark")


class Studio(ThreadingHTTPServer):
    """One studio: `address` opens it, `serve_forever` runs it, `close` ends it and whatever it started."""

    daemon_threads = True

    def __init__(self, port: int = 0, upload_mb: float = UPLOAD) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.token, self.limit, self.sessions = secrets.token_urlsafe(24), int(upload_mb * MEGABYTE), Sessions()
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}
        self.cookie = f"lawful-studio-{self.server_port}"  # cookies do not know ports

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/?token={self.token}"

    def close(self) -> None:
        self.sessions.close()
        self.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: Any) -> None:
        self.close()


def serve(port: int = 0, *, browser: bool = True, upload_mb: float = UPLOAD, say: Callable[[str], None] = print) -> None:
    """Run the studio until it is interrupted (Ctrl-C). port 0 is any that is free."""
    with Studio(port, upload_mb) as studio:
        say(f"lawful studio: {studio.address}")
        say("Only this machine can open it. Ctrl-C ends it; nothing is kept that was not downloaded.")
        if browser:
            webbrowser.open(studio.address)
        try:
            studio.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            say("ended")


class Handler(BaseHTTPRequestHandler):
    """One request. Every answer goes through `answer`; what is refused is one sentence."""

    server: Studio
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "lawful", ""
    timeout = 120

    def log_message(self, *unused: Any) -> None:
        """The terminal belongs to the user."""

    def do_GET(self) -> None:
        self.guarded(self.get)

    def do_POST(self) -> None:
        self.guarded(self.post)

    # ------------------------------------------------------------------ who asks

    def guarded(self, method: Callable[[], None]) -> None:
        try:
            url = urlsplit(self.path)
            self.route, self.query = url.path, {key: values[-1] for key, values in parse_qs(url.query).items()}
            self.unread = 0
            self.unread = self.length()
            self.admit()
            method()
            self.body(WORDS)  # what nobody asked for would be taken for the next request
        except Refused as error:
            self.refuse(str(error), error.status)
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True
        except Exception as error:  # a page that hears nothing would wait for ever
            self.refuse(f"The studio stumbled over this: {error or type(error).__name__}", 500)

    def length(self) -> int:
        given = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not given.isdigit():
            self.close_connection = True
            raise Refused("The length of the request is not given.", 411)
        return int(given)

    def admit(self) -> None:
        """Refuse whoever is not this machine's user in front of this page."""
        if self.headers.get("Host", "") not in self.server.hosts:
            raise Refused("The studio answers to 127.0.0.1 and localhost only; open the address that the terminal shows.", 403)
        origin, site = self.headers.get("Origin"), self.headers.get("Sec-Fetch-Site", "none")
        if (origin is not None and origin not in {f"http://{host}" for host in self.server.hosts}) or (
            site not in ("none", "same-origin") and not (self.command == "GET" and self.route == "/")
        ):
            raise Refused("Another site asked for this; the studio answers its own page only.", 403)
        if self.command == "GET" and self.route == "/" and "token" in self.query:
            return
        if not hmac.compare_digest(self.token_given().encode(), self.server.token.encode()):
            raise Refused("The token is missing or of another start; open the address that the terminal shows.", 403)

    def token_given(self) -> str:
        try:
            found = SimpleCookie(self.headers.get("Cookie", "")).get(self.server.cookie)
        except CookieError:
            return ""
        return "" if found is None else found.value

    # ------------------------------------------------------------------ answers

    def answer(self, body: bytes, kind: str, status: int = 200, **more: str) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
        }
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in (headers | {key.replace("_", "-"): value for key, value in more.items()}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def tell(self, value: Any) -> None:
        self.answer(json.dumps(value).encode(), "application/json")

    def refuse(self, message: str, status: int) -> None:
        """One sentence; what was sent and not read is read in part, so that the sender listens to it."""
        self.close_connection = self.close_connection or self.unread > 0
        if self.command == "GET" and self.route == "/":
            self.answer(f"lawful studio: {message}\n".encode(), "text/plain; charset=utf-8", status)
        else:
            self.answer(json.dumps({"error": message}).encode(), "application/json", status)
        self.wfile.flush()
        left = min(self.unread, DRAINED)
        self.connection.settimeout(5)
        with suppress(OSError):  # the sender may be gone
            while left > 0 and (piece := self.rfile.read(min(left, 65536))):
                left -= len(piece)

    def body(self, limit: int) -> bytes:
        if self.unread > limit:
            size = f"{self.unread / MEGABYTE:.1f} MB"
            raise Refused(f"The file has {size}; the studio takes {limit / MEGABYTE:g} MB. Use Python or `lawful fit`.", 413)
        data, self.unread = self.rfile.read(self.unread), 0
        return data

    def words(self) -> dict[str, Any]:
        """The JSON object of a request; its lists hold text."""
        try:
            found = json.loads(self.body(WORDS) or b"{}")
        except (ValueError, RecursionError) as error:
            raise Refused("The request is no JSON.") from error
        if not isinstance(found, dict):
            raise Refused("The request is no JSON object.")
        outputs = found.get("outputs", [])
        if not isinstance(outputs, list) or not all(isinstance(name, str) for name in outputs):
            raise Refused("The outputs are no list of names.")
        if not isinstance(found.get("law", ""), str):
            raise Refused("The law is no text.")
        return found

    def session(self) -> Session:
        return self.server.sessions.get(self.query.get("session", ""))

    # ------------------------------------------------------------------ what there is

    def get(self) -> None:
        if self.route == "/" and "token" in self.query:
            if not hmac.compare_digest(self.query["token"].encode(), self.server.token.encode()):
                raise Refused("The token is of another start; open the address that the terminal shows.", 403)
            cookie = f"{self.server.cookie}={self.server.token}; Path=/; HttpOnly; SameSite=Strict"
            self.answer(_file("index.html"), STATIC["/"][1], Set_Cookie=cookie)  # the page takes the token off its address
        elif self.route in STATIC:
            name, kind = STATIC[self.route]
            self.answer(_file(name), kind)
        elif self.route == "/favicon.ico":
            self.answer(b"", "image/x-icon", HTTPStatus.NO_CONTENT)
        elif self.route == "/api/job":
            job = self.session().jobs.get(self.query.get("kind", "fit"))
            self.tell({"state": "none"} if job is None else job.describe())
        elif self.route == "/api/picture" and self.query.get("name") in PICTURES:
            self.answer(self.session().result(f"{self.query['name']}.svg").read_bytes(), "image/svg+xml")
        elif self.route == "/download/model":
            self.download("model.lawful", "application/octet-stream")
        elif self.route == "/download/report":
            self.download("report.html", "text/html; charset=utf-8")
        else:
            raise Refused("There is no such page.", 404)

    def download(self, file: str, kind: str) -> None:
        data = self.session().result(file).read_bytes()
        self.answer(data, kind, Content_Disposition=f'attachment; filename="{file}"')

    def post(self) -> None:
        if self.route == "/api/session":
            self.tell({"session": self.server.sessions.new().name, "limit": self.server.limit, "sets": MENU})
        elif self.route == "/api/table":
            session = self.session()
            name = self.query.get("name", "table.csv")[:100] or "table.csv"
            table = read(self.body(self.server.limit), name)
            session.take(table)
            self.tell(table.describe())
        elif self.route == "/api/law":
            session, words = self.session(), self.words()
            self.tell(check(session.table, words.get("outputs", []), words.get("law", "")))
        elif self.route == "/api/set":
            words = self.words()
            self.tell({"law": words_for(str(words.get("name")), words.get("outputs", []))})
        elif self.route == "/api/draw":
            session, words = self.session(), self.words()
            picture, law = data_picture(session.table, words.get("outputs", []), words.get("law", ""), str(words.get("theme")))
            self.answer(picture, "image/svg+xml", X_Law="drawn" if law else "none")
        elif self.route == "/api/start":
            self.tell(self.start(self.session(), self.words()))
        elif self.route == "/api/cancel":
            session = self.session()
            session.cancel()
            self.tell({"state": "cancelled"})
        elif self.route == "/api/close":
            self.server.sessions.drop(self.query.get("session", ""))
            self.tell({})
        else:
            raise Refused("There is no such page.", 404)

    def start(self, session: Session, words: dict[str, Any]) -> dict[str, Any]:
        """Begin a fit or an examination."""
        kind, outputs, text = words.get("kind", "fit"), words.get("outputs", []), words.get("law", "")
        if kind not in ("fit", "doctor"):
            raise Refused("There is nothing of that kind to start.")
        law = items_of(text)
        X, Y, inputs = session.table.split(outputs)
        if kind == "doctor" and not law:
            raise Refused("The doctor examines a law; write one first.")
        if law:
            wrong = [line["message"] for line in check(session.table, outputs, text)["lines"] if not line["ok"]]
            if wrong:
                raise Refused(f"The law is not right yet: {wrong[0]}")
        job = {"kind": kind, "name": session.table.name, "inputs": inputs, "outputs": outputs, "law": law}
        return session.start(job, X, Y).describe()


def _file(name: str) -> bytes:
    return files("lawful.studio").joinpath("page", name).read_bytes()
