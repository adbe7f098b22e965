# SPDX-License-Identifier: MIT
"""peers.py KIND - the peers in Python, as workers (worker.h says how they are asked).

Each makes pairs as its users would: what can be kept between two locks is kept.
"""

import logging
import os
import re
import sys
import time

WARM_UP_PAIRS, WARM_UP_S = 2000, 0.3


def psycopg2_raw():
    import psycopg2

    connection = psycopg2.connect(os.environ["DBLOCK_TEST_PGSQL_TCP"])
    connection.autocommit = True
    cursor = connection.cursor()
    key = (os.getpid(),)

    def pair():
        cursor.execute("SELECT pg_try_advisory_lock(%s)", key)
        taken = cursor.fetchone()[0]
        cursor.execute("SELECT pg_advisory_unlock(%s)", key)
        return taken and cursor.fetchone()[0]

    return pair, "psycopg2 " + psycopg2.__version__.split()[0]


def redis_lock():
    import redis

    host, port = os.environ["BENCH_REDIS"].split(":")
    client = redis.Redis(host=host, port=int(port))
    lock = client.lock("bench-redis-py", timeout=30)

    def pair():
        taken = lock.acquire(blocking=False)
        lock.release()
        return taken

    return pair, "redis-py " + redis.__version__


def kazoo_lock():
    import kazoo
    from kazoo.client import KazooClient

    client = KazooClient(hosts=os.environ["BENCH_ZOOKEEPER"])
    client.start()
    lock = client.Lock("/bench-kazoo", "bench")

    def pair():
        taken = lock.acquire(blocking=False)
        lock.release()
        return taken

    # that it drops the connection on which it asks for this is nothing to warn of
    logging.disable(logging.WARNING)
    server = ".".join(str(number) for number in client.server_version())
    return pair, "kazoo " + kazoo.__version__ + ", ZooKeeper " + server


def tooz_lock(url):
    from importlib.metadata import version

    from tooz import coordination

    coordinator = coordination.get_coordinator(url, b"bench")
    coordinator.start()
    lock = coordinator.get_lock(b"bench-tooz")

    def pair():
        return lock.acquire(blocking=False) and lock.release()

    return pair, "tooz " + version("tooz")


def tooz_url(name):
    if name == "zookeeper":
        return "kazoo://" + os.environ["BENCH_ZOOKEEPER"]
    if name == "redis":
        return "redis://" + os.environ["BENCH_REDIS"]
    variable = "DBLOCK_TEST_PGSQL_TCP" if name == "postgresql" else "DBLOCK_TEST_MYSQL"
    return re.sub("^[a-z]+:", name + ":", os.environ[variable])


def open_kind(kind):
    if kind.startswith("tooz-"):
        return tooz_lock(tooz_url(kind[len("tooz-"):]))
    return {"psycopg2": psycopg2_raw, "redis-py": redis_lock, "kazoo": kazoo_lock}[kind]()


def run_for(pair, seconds, most=None):
    durations = []
    clock = time.perf_counter_ns
    end = clock() + int(seconds * 1e9)
    while True:
        before = clock()
        if not pair():
            raise RuntimeError("the lock was not to be had, or not to be released")
        after = clock()
        durations.append(after - before)
        if after >= end or len(durations) == most:
            return durations


def main():
    try:
        pair, about = open_kind(sys.argv[1])
        run_for(pair, WARM_UP_S, WARM_UP_PAIRS)
    except Exception as error:  # of whatever kind: its peer is left out, and says why
        print("cannot", type(error).__name__, " ".join(str(error).split())[:100], flush=True)
        return 1
    print("ready", about, flush=True)
    for line in sys.stdin:
        used = time.process_time_ns()
        durations = run_for(pair, float(line))
        used = time.process_time_ns() - used
        print(used // 1000, len(durations), *durations, flush=True)
    return 0


# os._exit: some of them have threads that nobody ends.
status = main()
sys.stdout.flush()
os._exit(status)
