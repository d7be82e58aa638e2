"""hw3.cpu_compact: compact and the two setitems on views of every kind."""

from view_kernels import view_kernel_tests

TESTS = view_kernel_tests("hw3.cpu_compact", "cpu")
