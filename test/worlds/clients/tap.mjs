// TAP for the tests of clients in JavaScript.

import { isDeepStrictEqual } from 'node:util'

let count = 0
let failed = 0

export function ok(passed, name, got) {
  console.log(`${passed ? 'ok' : 'not ok'} ${++count} - ${name}`)
  if (!passed) {
    failed++
    if (got !== undefined) console.log('# got:', got)
  }
}

export function same(got, expected, name) {
  ok(isDeepStrictEqual(got, expected), name, got)
}

export function finish() {
  console.log(`1..${count}`)
  process.exitCode = failed ? 1 : 0
}
