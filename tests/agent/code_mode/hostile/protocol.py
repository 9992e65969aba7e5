"""The bridge in hostile hands: rubbish ends the run, no trick gets a tool that is not allowed."""

# ruff: noqa: E501  an attempt reads best on one line

from __future__ import annotations

from agent.code_mode.host import End
from tests.agent.code_mode.hostile.script import Script

ABUSE = frozenset({End.PROTOCOL})
SEND = """
import json, struct, time
print("refused", flush=True)
BRIDGE = tools._wire._socket
def send(body, size=None):
    BRIDGE.send(struct.pack(">I", len(body) if size is None else size) + body)
"""
LINGER = "\ntime.sleep(30)\n"


def abuse(name: str, code: str) -> Script:
    return Script(name=name, code=SEND + code + LINGER, ends=ABUSE)


SCRIPTS: tuple[Script, ...] = (
    abuse("a frame of four gigabytes", "send(b'', 2**32 - 1)"),
    abuse("a frame one byte too long", "send(b'', 1_000_001)"),
    abuse("a frame of nothing", "send(b'')"),
    abuse("not JSON", "send(b'rubbish')"),
    abuse("not UTF-8", 'send(b\'{"i":1,"t":"\\xff","a":{}}\')'),
    abuse("not an object", "send(b'[1, 2]')"),
    abuse("nested too deep", 'send(b\'{"i":1,"t":"echo","a":{"x":\' + b\'[\' * 40 + b\']\' * 40 + b\'}}\')'),
    abuse("nested beyond the parser", "send(b'[' * 400_000)"),
    abuse("no number at all", 'send(b\'{"i":1,"t":"echo","a":{"x":NaN}}\')'),
    abuse("an infinite number", 'send(b\'{"i":1,"t":"echo","a":{"x":1e999}}\')'),
    abuse(
        "an integer of a hundred thousand digits", 'send(b\'{"i":1,"t":"echo","a":{"x":\' + b\'9\' * 100_000 + b\'}}\')'
    ),
    abuse("a number used twice", 'send(b\'{"i":1,"t":"echo","a":{}}\'); send(b\'{"i":1,"t":"echo","a":{}}\')'),
    abuse("a number that goes back", 'send(b\'{"i":5,"t":"echo","a":{}}\'); send(b\'{"i":4,"t":"echo","a":{}}\')'),
    abuse("a number that is a flag", 'send(b\'{"i":true,"t":"echo","a":{}}\')'),
    abuse("a number out of range", 'send(b\'{"i":2147483648,"t":"echo","a":{}}\')'),
    abuse("a negative number", 'send(b\'{"i":-1,"t":"echo","a":{}}\')'),
    abuse("a name that is a list", 'send(b\'{"i":1,"t":[],"a":{}}\')'),
    abuse("arguments that are a list", 'send(b\'{"i":1,"t":"echo","a":[]}\')'),
    abuse("a field too many", 'send(b\'{"i":1,"t":"echo","a":{},"parent":"T1"}\')'),
    abuse("a second word about the seal", "send(b'{\"s\":{}}')"),
    abuse("a value that is an object", "send(b'{\"v\":{}}')"),
    Script(
        name="half a frame, then silence",
        code=SEND + "send(b'{', 100)" + LINGER,
        ends=frozenset({End.WALL}),
        wall=1.2,
    ),
    Script(
        name="tools that are not allowed",
        code="""
for name in ("report", "read_result", "run_python", "bash", "danger", "needs_person", "no_such", "", "echo\\0", "__class__"):
    attempt(name, lambda: tools[name]())
""",
    ),
    Script(
        name="a denied tool named in every way",
        code="""
for name in ("danger ", "Danger", "./danger", "danger/../danger", "functions.danger"):
    attempt(name, lambda: tools[name]())
attempt("attribute", lambda: tools.danger())
attempt("gather", lambda: tools.gather(("danger", {})))
attempt("map", lambda: tools.map("danger", [{}]))
""",
    ),
    Script(
        name="denials say what to do",
        code="""
for name in ("danger", "needs_person", "report", "run_python"):
    try: tools[name]()
    except ToolError as error: print(name, error)
""",
        says="danger Not run: danger needs a person's approval. Call it directly, not from a script.",
    ),
    Script(
        name="arguments against the schema",
        code="attempt('type', lambda: tools.echo(text=[1])); attempt('unknown', lambda: tools.echo(text='x', other=1)); attempt('missing', lambda: tools.echo())",
    ),
    Script(
        name="more calls than are allowed",
        code="""
made = 0
for index in range(40):
    try: tools.echo(text=str(index)); made += 1
    except ToolError as error: last = error
print("refused", made, last)
""",
        says="refused 20 Not run: a script may make 20 calls",
    ),
    Script(
        name="calls without end",
        code="""
print("refused", flush=True)
while True:
    try: tools.echo(text="x")
    except ToolError: pass
""",
        ends=frozenset({End.CALLS}),
    ),
    Script(
        name="calls whose replies are never read",
        code=SEND
        + """
for index in range(1, 20):
    send(json.dumps({"i": index, "t": "large", "a": {}}).encode())
"""
        + LINGER,
        ends=frozenset({End.WALL}),
        wall=1.2,
    ),
    Script(
        name="the bridge closed, then called",
        code="BRIDGE = tools._wire._socket\nBRIDGE.close()\nattempt('call', lambda: tools.echo(text='x'))",
    ),
    Script(
        name="the bridge shut down",
        code="import _socket\ntools._wire._socket.shutdown(2)\nattempt('call', lambda: tools.echo(text='x'))",
    ),
    Script(
        name="a tool that never answers",
        code="attempt('hang', lambda: tools.hang())",
        wall=6.0,
        says="gave no answer",
    ),
    Script(
        name="an object that does harm when it is written down",
        code="""
class Harm:
    def __reduce__(self): return (os.system, ("echo BREACH",))
    def __str__(self): return "refused as text"
print(tools.echo(text=Harm()))
""",
        says="refused as text",
    ),
    Script(
        name="two hundred calls from twenty threads, each its own answer",
        code="""
from concurrent.futures import ThreadPoolExecutor
texts = [f"number {index}" for index in range(18)]
with ThreadPoolExecutor(12) as pool:
    got = list(pool.map(lambda text: tools.echo(text=text), texts))
print("refused a mix-up" if got == texts else "BREACH")
""",
    ),
)
