# SPDX-License-Identifier: Apache-2.0
"""What `./dev` is made of."""
