/* SPDX-License-Identifier: MIT */
/* fork.c - see fork.h.
 *
 * getpid() is a system call in glibc since 2.25: four in each acquire and release
 * were a twentieth of an advisory pair. So a page is kept that the kernel empties
 * in every child (MADV_WIPEONFORK, Linux 4.14; also after a raw clone(), which
 * pthread_atfork() does not see): a process that finds it empty takes the next
 * number. Numbers are unique along a line of descent, which is all that matters:
 * a client can be inherited from an ancestor alone, and ids cannot come again as
 * process ids can. Where there is no such page, the process id has to do. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MADV_WIPEONFORK */

#include "core/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(_Atomic uint64_t *) page; /* NULL: not made yet, or not to be had */
static _Atomic uint64_t n_processes;     /* along this line of descent; is inherited */

static void make_page(void)
{
#ifdef MADV_WIPEONFORK
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return;
    if (madvise(memory, size, MADV_WIPEONFORK) != 0) {
        (void)munmap(memory, size);
        return;
    }
    atomic_store_explicit(&page, memory, memory_order_release);
#endif
}

uint64_t dblk_fork_generation(void)
{
    _Atomic uint64_t *number = atomic_load_explicit(&page, memory_order_acquire);
    uint64_t generation;
    uint64_t none = 0;

    if (number == NULL) {
        (void)pthread_once(&once, make_page);
        number = atomic_load_explicit(&page, memory_order_acquire);
    }
    if (number == NULL)
        return (uint64_t)getpid();
    generation = atomic_load_explicit(number, memory_order_relaxed);
    if (generation != 0)
        return generation;
    generation = atomic_fetch_add(&n_processes, 1) + 1;
    /* two threads of a young process at once: the first one's number stands */
    return atomic_compare_exchange_strong(number, &none, generation) ? generation : none;
}
