# SPDX-License-Identifier: Apache-2.0
"""One module for each command, each with `run(options)`, which returns the exit code. run.py imports only the one asked
for."""
