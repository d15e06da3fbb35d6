# TAP for the tests of clients in Ruby.

$count = $failed = 0

def ok(passed, name, got = nil)
  puts "#{passed ? 'ok' : 'not ok'} #{$count += 1} - #{name}"
  return if passed

  $failed += 1
  puts "# got: #{got.inspect}" unless got.nil?
end

def same(got, expected, name) = ok(got == expected, name, got)

def fails(error, name)
  yield
  ok(false, name)
rescue error => e
  ok(true, name)
  e
end

def finish
  puts "1..#{$count}"
  exit($failed.zero?)
end
