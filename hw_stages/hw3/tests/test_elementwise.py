"""hw3.cpu_elementwise and hw3.cuda_elementwise: every kernel on sizes around CUDA's blocks."""

from arithmetic_kernels import elementwise_tests

TESTS = [
    *elementwise_tests("hw3.cpu_elementwise", "cpu"),
    *elementwise_tests("hw3.cuda_elementwise", "cuda"),
]
