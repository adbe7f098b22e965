# SPDX-License-Identifier: MIT
# tests/build.mk - from test sources to programs, and the goals that run them.
