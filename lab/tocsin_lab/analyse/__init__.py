# SPDX-License-Identifier: Apache-2.0
"""From a result to statements: plain data, no formatting."""
