# SPDX-License-Identifier: Apache-2.0
"""Plans, runs, analyses and presents what the workers measure. lab/README.md is the map."""
