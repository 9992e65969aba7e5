"""Sockets of every kind: none can be made, and the one that is there leads to the parent alone."""

# ruff: noqa: E501  an attempt reads best on one line

from __future__ import annotations

from tests.agent.code_mode.hostile.script import Script, refused

SCRIPTS: tuple[Script, ...] = (
    refused("tcp", "import socket; attempt('connect', lambda: socket.create_connection(('127.0.0.1', @TCP@), 2))"),
    refused(
        "udp",
        """
import socket
def send():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        return out.sendto(b"BREACH", ("127.0.0.1", @UDP@))
attempt("sendto", send)
""",
    ),
    refused(
        "unix socket by path",
        """
import socket
def connect():
    out = socket.socket(socket.AF_UNIX); out.connect("@UNIX@"); return out.send(b"BREACH")
attempt("connect", connect)
""",
    ),
    refused(
        "abstract unix socket",
        """
import socket
def connect():
    out = socket.socket(socket.AF_UNIX); out.connect("\\0@ABSTRACT@"); return out.send(b"BREACH")
attempt("connect", connect)
""",
    ),
    refused(
        "a socket pair's end sent elsewhere",
        """
import socket
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
attempt("path", lambda: ours.sendto(b"BREACH", "@UNIX@.dgram"))
attempt("abstract", lambda: ours.sendto(b"BREACH", "\\0@ABSTRACT@.dgram"))
attempt("connect", lambda: ours.connect("@UNIX@.dgram"))
attempt("sendmsg", lambda: ours.sendmsg([b"BREACH"], [], 0, "@UNIX@.dgram"))
""",
    ),
    refused(
        "other families",
        """
import socket
for family in ("AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_CAN", "AF_BLUETOOTH", "AF_INET6"):
    if hasattr(socket, family):
        attempt(family, lambda: socket.socket(getattr(socket, family), socket.SOCK_RAW))
        attempt(family, lambda: socket.socket(getattr(socket, family), socket.SOCK_DGRAM))
attempt("pair", lambda: socket.socketpair(socket.AF_INET))
""",
    ),
    refused("every family, raw", "for family in range(50): attempt('socket', lambda: raw('socket', family, 1, 0))"),
    refused(
        "listen",
        """
import socket
def serve():
    server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen(); return server.getsockname()
attempt("listen", serve)
attempt("pair", lambda: socket.socketpair()[0].listen())
""",
    ),
    refused(
        "names",
        "import socket; attempt('lookup', lambda: socket.getaddrinfo('data.example.test', 80)); attempt('host', lambda: socket.gethostbyname('localhost.'))",
    ),
    refused(
        "http",
        """
import http.client, urllib.request
attempt("metadata", lambda: urllib.request.urlopen("http://169.254.169.254/latest/meta-data/", timeout=2))
attempt("loopback", lambda: http.client.HTTPConnection("127.0.0.1", @TCP@, timeout=2).request("GET", "/BREACH"))
attempt("file", lambda: urllib.request.urlopen("file://@FILE@").read())
""",
    ),
    refused(
        "asyncio",
        """
import asyncio
attempt("connect", lambda: asyncio.run(asyncio.open_connection("127.0.0.1", @TCP@)))
""",
    ),
    refused(
        "the bridge used as a socket",
        """
import socket
for fd in range(3, 8):
    try:
        bridge = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=fd)
    except OSError as error:
        print("refused", error)
        continue
    attempt("connect", lambda: bridge.connect("@UNIX@"))
    attempt("bind", lambda: bridge.bind("@FOLDER@/bound"))
    attempt("listen", lambda: bridge.listen())
    attempt("accept", lambda: bridge.accept())
    attempt("passfd", lambda: socket.send_fds(bridge, [b"x"], [0]))
    attempt("takefd", lambda: socket.recv_fds(bridge, 1, 1))
    bridge.detach()
""",
    ),
    refused(
        "message calls",
        "attempt('sendmsg', lambda: raw('sendmsg', 3, 0, 0)); attempt('sendmmsg', lambda: raw('sendmmsg', 3, 0, 0, 0)); attempt('recvmsg', lambda: raw('recvmsg', 3, 0, 0))",
    ),
    refused(
        "kernel copying between descriptors",
        "attempt('sendfile', lambda: raw('sendfile', 1, 0, 0, 10)); attempt('splice', lambda: raw('splice', 0, 0, 1, 0, 10, 0)); attempt('copy', lambda: raw('copy_file_range', 0, 0, 1, 0, 1, 0))",
    ),
)
