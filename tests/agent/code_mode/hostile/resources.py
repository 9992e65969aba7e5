"""Bombs: each ends in its limit, and costs nobody else anything."""

# ruff: noqa: E501  an attempt reads best on one line

from __future__ import annotations

from agent.code_mode.host import End
from tests.agent.code_mode.hostile.script import Script, refused

LIMITED = frozenset({End.MEMORY, End.CPU, End.WALL, End.FAILED, End.SIGNAL})
WALL = frozenset({End.WALL})

SCRIPTS: tuple[Script, ...] = (
    Script(name="busy loop", code="print('refused', flush=True)\nwhile True: pass", ends=WALL, wall=1.2),
    Script(
        name="busy loop past the CPU limit",
        code="print('refused')\nwhile True: pass",
        ends=frozenset({End.CPU}),
        cpu=1,
        wall=30,
    ),
    Script(
        name="CPU signals ignored",
        code="""
import signal
print("refused")
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: pass
""",
        ends=frozenset({End.CPU}),
        cpu=1,
        wall=30,
    ),
    Script(
        name="every exception swallowed",
        code="""
print("refused")
while True:
    try:
        while True: pass
    except BaseException: pass
""",
        ends=WALL,
        wall=1.2,
    ),
    Script(name="sleep", code="import time; print('refused'); time.sleep(3600)", ends=WALL, wall=1.2),
    Script(
        name="signals masked, then sleep",
        code="import signal, time; print('refused'); signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); time.sleep(3600)",
        ends=WALL,
        wall=1.2,
    ),
    Script(
        name="one great block of memory", code="print('refused'); x = bytearray(8 << 30)", ends=frozenset({End.MEMORY})
    ),
    Script(
        name="memory bit by bit",
        code="print('refused')\nx = []\nwhile True: x.append(bytearray(1 << 20))",
        ends=frozenset({End.MEMORY}),
    ),
    Script(
        name="memory, with the error swallowed",
        code="""
print("refused")
x = []
while True:
    try: x.append(bytearray(1 << 20))
    except MemoryError: pass
""",
        ends=LIMITED,
        wall=1.0,
    ),
    Script(
        name="memory mapped around the allocator",
        code="""
import mmap
kept = []
def take():
    while True: kept.append(mmap.mmap(-1, 16 << 20))
attempt("map", take)
""",
    ),
    Script(name="a number of a billion digits", code="print('refused'); x = 10 ** 10 ** 10", ends=LIMITED, wall=1.0),
    Script(name="a string doubled", code="print('refused')\nx = 'x'\nwhile True: x += x", ends=frozenset({End.MEMORY})),
    Script(
        name="a pattern that backtracks for ever",
        code="import re; print('refused', flush=True); re.match(r'(a+)+$', 'a' * 60 + 'b')",
        ends=WALL,
        wall=1.2,
    ),
    refused(
        "fork bomb",
        """
for _ in range(100):
    attempt("fork", os.fork)
""",
    ),
    Script(
        name="thread bomb",
        code="""
import threading, time
made = 0
try:
    while made < 2000:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); made += 1
except RuntimeError as error:
    print("refused", error)
print("BREACH" if made != 16 else "refused", made)
""",
    ),
    Script(
        name="thread bomb through the C library",
        code="""
print("refused")
handle = ctypes.c_ulong()
entry = ctypes.cast(libc.pause, ctypes.c_void_p)
made = sum(libc.pthread_create(ctypes.byref(handle), None, entry, None) == 0 for _ in range(200))
print("BREACH" if made else "refused", made)
""",
    ),
    Script(
        name="descriptor bomb",
        code="""
made = 0
try:
    while made < 100_000:
        os.dup(1); made += 1
except OSError as error:
    print("refused", error)
print("BREACH" if made > 64 else "refused")
""",
    ),
    Script(
        name="pipes filled and kept",
        code="""
try:
    while True:
        read, write = os.pipe(); os.set_blocking(write, False); os.write(write, bytes(1 << 16))
except OSError as error:
    print("refused", error)
""",
    ),
    Script(
        name="locked memory, queued signals, timers",
        code="""
import signal
attempt("mlock", lambda: raw("mmap", 0, 1 << 24, 3, 0x2022, -1, 0))
attempt("timer", lambda: raw("timer_create", 1, 0, ctypes.byref(ctypes.c_int())))
attempt("queue", lambda: raw("rt_sigqueueinfo", os.getpid(), 10, ctypes.create_string_buffer(128)))
""",
    ),
    Script(
        name="a storm of own timers",
        code="""
import signal
signal.signal(signal.SIGALRM, lambda *_: None)
print("refused", flush=True)
signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)
while True: pass
""",
        ends=frozenset({End.WALL, End.CPU}),
        wall=1.2,
    ),
    Script(
        name="source that overflows the parser",
        code="print('refused')\ntry:\n    compile('(' * 100_000, 'x', 'eval')\nexcept BaseException as e: print(type(e))\ntry:\n    eval('-' * 1_000_000 + '1')\nexcept BaseException as e: print(type(e))",
        ends=frozenset({End.FINISHED, End.SIGNAL, End.MEMORY}),
        says="",
    ),
    Script(
        name="a script that can't be parsed for its depth",
        code="x = " + "[" * 5_000 + "]" * 5_000,
        ends=frozenset({End.FAILED, End.SIGNAL, End.MEMORY}),
        says="",
        bare=True,
    ),
    Script(
        name="a zip bomb",
        code="import zlib; print('refused'); data = zlib.compress(bytes(1 << 27)); x = [zlib.decompress(data) for _ in range(10)]",
        ends=frozenset({End.MEMORY}),
    ),
)
