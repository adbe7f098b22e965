// SPDX-License-Identifier: MIT
// peers.js KIND - the peers for Node.js, as workers (worker.h says how they are asked).
//
// Each makes pairs as its users would: what can be kept between two locks is kept. The
// packages are those that tests/bench/peers/install has put into build/peers.
'use strict'

const path = require('path')
const readline = require('readline')
const packages = require('module').createRequire(path.resolve('build/peers/package.json'))

const WARM_UP_PAIRS = 2000
const WARM_UP_S = 0.3

function versionOf (name) {
  return name + ' ' + JSON.parse(require('fs').readFileSync(
    path.resolve('build/peers/node_modules', name, 'package.json'), 'utf8')).version
}

function openRedis () {
  const Redis = packages('ioredis')
  const [host, port] = process.env.BENCH_REDIS.split(':')
  return new (Redis.default || Redis)({ host, port: Number(port) })
}

const kinds = {
  async redlock () {
    const Redlock = packages('redlock')
    const redlock = new Redlock([openRedis()], { retryCount: 0 })
    return [async () => {
      const lock = await redlock.lock('bench-redlock', 30000)
      await lock.unlock()
      return true
    }, versionOf('redlock')]
  },

  async 'redis-semaphore' () {
    const { Mutex } = packages('redis-semaphore')
    const mutex = new Mutex(openRedis(), 'bench-semaphore', { lockTimeout: 30000 })
    return [async () => {
      const isTaken = await mutex.tryAcquire()
      await mutex.release()
      return isTaken
    }, versionOf('redis-semaphore')]
  },

  async 'advisory-lock' () {
    const library = packages('advisory-lock')
    const mutex = (library.default || library)(process.env.DBLOCK_TEST_PGSQL_TCP)('bench')
    return [async () => {
      const unlock = await mutex.tryLock()
      if (!unlock) return false
      await unlock()
      return true
    }, versionOf('advisory-lock')]
  },

  async pg () {
    const { Client } = packages('pg')
    const client = new Client({ connectionString: process.env.DBLOCK_TEST_PGSQL_TCP })
    await client.connect()
    const key = [String(process.pid)]
    const take = { name: 'take', text: 'SELECT pg_try_advisory_lock($1) AS ok', values: key }
    const drop = { name: 'drop', text: 'SELECT pg_advisory_unlock($1) AS ok', values: key }
    return [async () => {
      const taken = await client.query(take)
      const dropped = await client.query(drop)
      return taken.rows[0].ok && dropped.rows[0].ok
    }, versionOf('pg')]
  },

  async mysql2 () {
    const mysql = packages('mysql2/promise')
    const connection = await mysql.createConnection(process.env.DBLOCK_TEST_MYSQL)
    const key = ['bench-' + process.pid]
    return [async () => {
      const [taken] = await connection.execute('SELECT GET_LOCK(?, 0) AS ok', key)
      const [dropped] = await connection.execute('SELECT RELEASE_LOCK(?) AS ok', key)
      return Number(taken[0].ok) === 1 && Number(dropped[0].ok) === 1
    }, versionOf('mysql2')]
  }
}

async function runFor (pair, seconds, most) {
  const durations = []
  const end = process.hrtime.bigint() + BigInt(Math.floor(seconds * 1e9))
  for (;;) {
    const before = process.hrtime.bigint()
    if (!await pair()) throw new Error('the lock was not to be had, or not to be released')
    const after = process.hrtime.bigint()
    durations.push(Number(after - before))
    if (after >= end || durations.length === most) return durations
  }
}

async function main () {
  let pair, about
  try {
    [pair, about] = await kinds[process.argv[2]]()
    await runFor(pair, WARM_UP_S, WARM_UP_PAIRS)
  } catch (error) {
    process.stdout.write('cannot ' + String(error.message).replace(/\s+/g, ' ').slice(0, 120) + '\n')
    process.exitCode = 1
    return
  }
  process.stdout.write('ready ' + about + '\n')
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const usedBefore = process.cpuUsage()
    const durations = await runFor(pair, Number(line))
    const used = process.cpuUsage(usedBefore)
    process.stdout.write([used.user + used.system, durations.length, ...durations].join(' ') + '\n')
  }
}

main().then(() => process.exit(), error => {
  process.stderr.write('peers.js: ' + error.stack + '\n')
  process.exit(1)
})
