"""Ends of every kind, and games with signals: each is told as what it was."""

# ruff: noqa: E501  an attempt reads best on one line

from __future__ import annotations

from agent.code_mode.host import End
from tests.agent.code_mode.hostile.script import Script

FAILED = frozenset({End.FAILED})
SIGNAL = frozenset({End.SIGNAL})

SCRIPTS: tuple[Script, ...] = (
    Script(name="exit 0", code="print('refused'); sys.exit(0)"),
    Script(name="exit 3", code="print('refused'); sys.exit(3)", ends=FAILED, says="status 3"),
    Script(name="exit with words", code="sys.exit('refused to go on')", ends=FAILED),
    Script(name="exit with an odd number", code="print('refused'); sys.exit(256 + 7)", ends=FAILED, says="status 7"),
    Script(name="exit at once", code="print('refused', flush=True); os._exit(0)"),
    Script(
        name="exit as the seal would",
        code="print('refused', flush=True); os._exit(97)",
        ends=frozenset({End.UNSEALED, End.FAILED}),
    ),
    Script(name="abort", code="print('refused', flush=True); os.abort()", ends=SIGNAL, says="SIGABRT"),
    Script(
        name="kill itself", code="print('refused', flush=True); os.kill(os.getpid(), 9)", ends=SIGNAL, says="SIGKILL"
    ),
    Script(
        name="terminate itself",
        code="import signal; print('refused', flush=True); signal.raise_signal(15)",
        ends=SIGNAL,
        says="SIGTERM",
    ),
    Script(
        name="stop itself",
        code="import signal; print('refused', flush=True); os.kill(os.getpid(), signal.SIGSTOP)",
        ends=frozenset({End.WALL}),
        wall=1.2,
    ),
    Script(name="a real-time signal", code="print('refused', flush=True); os.kill(os.getpid(), 40)", ends=SIGNAL),
    Script(name="interrupted by itself", code="print('refused', flush=True); raise KeyboardInterrupt", ends=FAILED),
    Script(
        name="exit handlers are not waited for",
        code="print('refused')\nclass X:\n    def __del__(self):\n        while True: pass\nkept = X()",
    ),
    Script(
        name="a thread that does not end",
        code="import threading, time\nprint('refused', flush=True)\nthreading.Thread(target=time.sleep, args=(60,)).start()",
        ends=frozenset({End.WALL}),
        wall=1.2,
    ),
    Script(
        name="the main thread ends, another goes on",
        code="""
import threading, time
print("refused", flush=True)
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
libc.syscall(ctypes.c_long(60 if not ARM else 93), 0)
""",
        ends=frozenset({End.WALL, End.FINISHED}),
        wall=1.2,
    ),
    Script(
        name="an exception in a thread",
        code="import threading\nt = threading.Thread(target=lambda: 1/0)\nt.start(); t.join(); print('refused')",
    ),
    Script(
        name="a syntax error runs nothing",
        code="print('BREACH' + '')\nif True print(1)",
        ends=FAILED,
        says="Nothing was run",
        bare=True,
    ),
    Script(name="await at the top", code="await tools.echo(text='x')", ends=FAILED, says="no await", bare=True),
)
