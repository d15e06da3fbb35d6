# test/worlds/torture/sum_results adds up what script/tests/torture adds to a file.

use SnowflakeTest;

my $dir = PostgreSQL::Test::Utils::tempdir();
my $server = 'PostgreSQL 17.2 (Debian 17.2-1.pgdg120+1)';
append_to_file("$dir/results", <<"EOT");
2026-11-22 20:30, 8 min: 5 rounds, 10 faults in 1 worlds (2 failovers of the registry), 9 servers, 100 IDs, 10 worker IDs, 24 grants, 1 duplicates, 0 falls, 0 shared, 0 foreign, 2 failed, 11 refused, longest wait 2.2 s, seed 133
1 histories of 11 sessions checked: 65991 calls, 659881 IDs, 2700 grants, 0 marks of standbys, 0 wrong
faults by kind: promotion 2
2026-11-26 09:00, commit abc, $server, 3 min: 2 rounds, 4 faults in 1 worlds (0 failovers of the registry), 4 servers, 7000 numbers of ranges, 50 IDs, 0 rows replicated, 0 wrong, 1 failed, 43 refused, longest wait 0.1 s, seed 3
2026-11-26 09:10, commit abd-dirty, $server, 4 min: 1 rounds, 1 faults in 1 worlds (0 failovers of the registry), 4 servers, 1000 numbers of ranges, 5 IDs, 0 rows replicated, 2 wrong, 0 failed, 43 refused, longest wait 0.1 s, seed 4
EOT
is(qx('$^X' '$FindBin::RealBin/sum_results' '$dir/results'), <<'EOT', 'runs are added up by kind and version');
--ranges, PostgreSQL 17: 2 runs of 2 commits, 7 minutes, 3 rounds, 5 faults, 8000 numbers of ranges, 55 IDs, 2 wrong, 1 failed
--registry, PostgreSQL 15: 1 runs of 1 commits, 8 minutes, 5 rounds, 10 faults, 100 IDs, 1 duplicates, 0 falls, 0 shared, 0 foreign, 2 failed
EOT

my $runs = 0;
$runs += $_ foreach qx('$^X' '$FindBin::RealBin/sum_results') =~ /: (\d+) runs/g;
is($runs, scalar(() = slurp_file("$FindBin::RealBin/results") =~ /^20\d\d-/mg), 'each run of results is read');

done_testing();
