"""hw3.cpu_reduce and hw3.cuda_reduce: sums and maxima of blocks."""

from arithmetic_kernels import reduce_tests

TESTS = [*reduce_tests("hw3.cpu_reduce", "cpu"), *reduce_tests("hw3.cuda_reduce", "cuda")]
