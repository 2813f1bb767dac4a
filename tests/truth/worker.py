"""A library in a process of its own: a file that kills it costs that file, not the tests."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from typing import Any

from tests.collections_of_files import PROJECT

# glibc fills memory with a pattern when it is allocated or freed. Libraries that read memory they never wrote then show
# the same on every run, instead of what an earlier file has left there.
_ENVIRONMENT = {"MALLOC_PERTURB_": "165"}


class Worker:
    """A module that reads questions as lines of JSON, and answers each with a line.

    It is started when it is first asked, and again when it has died: of a question, or by itself between two.
    """

    def __init__(self, module: str, seconds: float) -> None:
        self._module = module
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None

    def ask(self, question: Any) -> str:
        """Return the answer; nothing where the question killed the process, or took too long."""
        process = self._send(json.dumps(question) + "\n")
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], self._seconds)
        answer = process.stdout.readline() if ready else ""
        if not answer:
            self.close()
        return answer

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _send(self, line: str) -> subprocess.Popen[str]:
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except BrokenPipeError:  # it has died since its last answer
            self.close()
            return self._send(line)
        return process

    def _start(self) -> subprocess.Popen[str]:
        pipe, command = subprocess.PIPE, [sys.executable, "-m", self._module]
        self._process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=PROJECT,
            env={**os.environ, **_ENVIRONMENT},
        )
        return self._process
