# SPDX-License-Identifier: Apache-2.0
"""Runs the command line inside the test."""

import contextlib
import io

from run import main


def outcome(*arguments: object) -> tuple[int, str, str]:
    """Exit code, output, errors."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = main([str(one) for one in arguments])
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue(), errors.getvalue()
