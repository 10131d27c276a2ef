"""Random programs from the whole language, compared with differences: `python -m tests.fuzz --count 20000`.

writer.py writes a program from a seed (arrays.py the statements on whole arrays, constructs/ classes, records,
complex numbers and the like, one kind in a file; kinds.py and tools.py have the facts about names), cases.py turns
its text into functions, oracle.py compares one program with differences, shrink.py makes a failing one small,
campaign.py runs many on several processes and reports the failures.
"""
