<?php
// TAP for the tests of clients in PHP.

$count = $failed = 0;

function ok($passed, $name, $got = null)
{
    global $count, $failed;
    $count++;
    echo $passed ? 'ok' : 'not ok', " $count - $name\n";
    if (!$passed) {
        $failed++;
        echo '# got: ', json_encode($got), "\n";
    }
}

function same($got, $expected, $name)
{
    ok($got === $expected, $name, $got);
}

function fails($function, $name)
{
    try {
        $function();
        ok(false, $name);
    } catch (Throwable $e) {
        ok(true, $name);
        return $e;
    }
}

function finish()
{
    global $count, $failed;
    echo "1..$count\n";
    exit($failed ? 1 : 0);
}
