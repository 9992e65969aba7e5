"""Finding the code in what a model wrote."""

from __future__ import annotations

import pytest

from agent.code_mode.script import source_of


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("print(1)", "print(1)"),
        ("Here is the script:\n```python\nprint(1)\n```\nIt prints one.", "print(1)"),
        ("```\nprint(1)\n```", "print(1)"),
        ("~~~py\nprint(1)\n~~~", "print(1)"),
        ("```python\na = 1\n```\nand then\n```python\nprint(a)\n```", "a = 1\nprint(a)"),
        ("\ufeffprint(1)", "print(1)"),
        ("if 1:\r\n\tprint(1)\r\n", "if 1:\n\tprint(1)\n"),
        ("    a = 1\n    print(a)", "a = 1\nprint(a)"),
        ('text = """\n```\nnot a fence\n```\n"""', 'text = """\n```\nnot a fence\n```\n"""'),
        ("````python\nx = '''\n```\n'''\n````", "x = '''\n```\n'''"),
        ("```python\nprint(1)", "print(1)"),
    ],
)
def test_the_code_is_found(written: str, code: str) -> None:
    assert source_of(written) == code


@pytest.mark.parametrize("written", ['f"{', "if True print(1)", "nothing but prose here", "x = (", "\0"])
def test_what_is_no_code_is_left_for_the_compiler_to_refuse(written: str) -> None:
    assert source_of(written) == written
