# TAP for the tests of clients in Python.

import sys

count = 0
failed = 0


def ok(passed, name, got=None):
    global count, failed
    count += 1
    print(("ok" if passed else "not ok") + " %d - %s" % (count, name), flush=True)
    if not passed:
        failed += 1
        if got is not None:
            print("# got: %r" % (got,), flush=True)


def same(got, expected, name):
    ok(got == expected, name, got)


def fails(error, function, name):
    try:
        function()
        ok(False, name)
    except error as e:
        ok(True, name)
        return e


def finish():
    print("1..%d" % count)
    sys.exit(failed != 0)
