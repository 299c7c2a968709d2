# SPDX-License-Identifier: Apache-2.0
"""Statements as tables, pages and Markdown."""
