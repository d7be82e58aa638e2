"""How fast needle is, beside numpy and PyTorch: `python -m bench`, or `make bench`.

Read `workloads.py` (what is timed), `with_needle.py` and its twins (what each library runs for it),
`rounds.py` and `worker.py` (how it is timed), `tables.py` (what is printed).
"""
