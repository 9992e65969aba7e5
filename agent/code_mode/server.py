"""The fork server: a process with everything loaded that forks one child a script. Standard library only.

Started as `python -I -S -B -X utf8 server.py FD`. It never runs foreign code and knows no secret. Each message on FD
carries four descriptors: bridge, stdout, stderr, and a socket on which it hands back a handle of the child and later
tells how the child ended. It ends with its control socket, and its children end with it.
"""

from __future__ import annotations

import array
import gc
import os
import select
import signal
import socket
import struct
import sys
from contextlib import suppress

if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))  # noqa: PTH120  as in the child

from agent.code_mode import child, modules
from agent.code_mode.seal import PR_SET_DUMPABLE, prctl, prepare

EXIT = struct.Struct("!idq")
FIRST_FREE = 4  # after stdin, stdout, stderr, bridge


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    child.reset_signals()  # were SIGCHLD ignored, the ends of children would be lost
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the worker's business
    modules.load_all()
    prepare()
    child.no_more_imports()
    prctl(PR_SET_DUMPABLE, 0)
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection in a child would copy every page
    control.send(b"ready")
    Server(control).serve()


class Server:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._running: dict[int, tuple[int, socket.socket]] = {}  # pidfd -> pid, where to tell its end

    def serve(self) -> None:
        while True:
            for fd, _ in self._poll.poll():
                if fd != self._control.fileno():
                    self._ended(fd)
                elif not self._take():
                    return

    def _take(self) -> bool:
        """One request; False when the worker is gone."""
        data, fds, _, _ = socket.recv_fds(self._control, 16, 4)
        if not data:
            return False
        if len(fds) == 4:
            self._fork(*fds)
        else:
            for fd in fds:
                os.close(fd)
        return True

    def _fork(self, bridge: int, stdout: int, stderr: int, status: int) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become(bridge, stdout, stderr, parent)
        for fd in (bridge, stdout, stderr):
            os.close(fd)
        pidfd = os.pidfd_open(pid)
        line = socket.socket(fileno=status)
        self._running[pidfd] = (pid, line)
        self._poll.register(pidfd, select.POLLIN)
        _send_fd(line, pid, pidfd)

    def _ended(self, pidfd: int) -> None:
        pid, line = self._running.pop(pidfd)
        self._poll.unregister(pidfd)
        _, status, usage = os.wait4(pid, 0)
        os.close(pidfd)
        with suppress(OSError):  # nobody waits any more
            line.send(EXIT.pack(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss), socket.MSG_DONTWAIT)
        line.close()


def _send_fd(line: socket.socket, pid: int, pidfd: int) -> None:
    try:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [pidfd]))]
        line.sendmsg([pid.to_bytes(4, "big")], rights)
    except OSError:
        os.kill(pid, signal.SIGKILL)  # nobody waits for it


def _become(bridge: int, stdout: int, stderr: int, parent: int) -> None:
    """In the child: keep its own descriptors, let go of all others, be what a cold start would be. Never returns."""
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # one of its own: flags of a shared one would be seen by others
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        if bridge != FIRST_FREE - 1:
            os.dup2(bridge, FIRST_FREE - 1)
        os.closerange(FIRST_FREE, os.sysconf("SC_OPEN_MAX"))
        child.live(FIRST_FREE - 1, parent)
    except BaseException as error:  # noqa: BLE001  nothing may go on from here as if it were the server
        os.write(2, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
