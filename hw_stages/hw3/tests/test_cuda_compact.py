"""hw3.cuda_compact: the same in CUDA, with views of more than one block."""

from view_kernels import view_kernel_tests

TESTS = view_kernel_tests("hw3.cuda_compact", "cuda")
