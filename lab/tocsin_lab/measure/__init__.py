# SPDX-License-Identifier: Apache-2.0
"""Runs the workers and keeps what they say."""
