"""Statements as tables, pages and Markdown."""
