"""Runs the workers and keeps what they say."""
