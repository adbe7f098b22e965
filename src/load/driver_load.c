/* SPDX-License-Identifier: MIT */
/* driver_load.c - from the scheme of a URL to a driver: the table of schemes,
 * and the run-time linker.
 *
 * What a driver is and whether it fits this release is dblock_open()'s to judge;
 * here it is only found. */
#define _GNU_SOURCE /* dladdr */
#include <dblock/load.h>
#include <dblock/version.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define SOVERSION TEXT(DBLOCK_VERSION_MAJOR)

struct driver_entry {
    const char *scheme;
    const char *soname;
    const char *function; /* what the library exports */
    const char *package;  /* Debian's name, for the hint */
};

#define DRIVER(scheme, driver)                                                                     \
    {                                                                                              \
        scheme, "libdblock-" driver ".so." SOVERSION, "dblock_" driver "_driver",                  \
            "libdblock-" driver SOVERSION                                                          \
    }

static const struct driver_entry entries[] = {
    DRIVER("postgresql", "pgsql"),
    DRIVER("postgres", "pgsql"),
    DRIVER("mysql", "mysql"),
    DRIVER("mariadb", "mysql"),
    DRIVER("sqlite", "sqlite"),
};

typedef const dblock_driver *(*driver_fn)(void);

static dblock_status fail(struct dblock_error *reterr, dblock_status status)
{
    if (reterr != NULL) {
        memset(reterr, 0, sizeof *reterr);
        reterr->status = status;
    }
    return status;
}

static const struct driver_entry *find_entry(const char *url)
{
    size_t length = strcspn(url, ":");
    size_t i;

    if (url[length] != ':')
        return NULL;
    for (i = 0; i < sizeof entries / sizeof entries[0]; i++)
        if (strlen(entries[i].scheme) == length && memcmp(entries[i].scheme, url, length) == 0)
            return &entries[i];
    return NULL;
}

/* What the linker says of the last failure. */
static void keep_cause(char *cause, size_t size, const char *soname)
{
    const char *said = dlerror();

    (void)snprintf(cause, size, "%s", said != NULL ? said : soname);
}

/* The run-time linker's own search comes first, so that an installation, RPATH
 * or LD_LIBRARY_PATH decide. The folder of this very library is the second
 * place: a binding that opened it by its full path finds the drivers beside it. Of a driver that
 * is there and cannot be opened `cause` is the reason, and not that it is nowhere else. */
static void *open_library(const char *soname, char *cause, size_t cause_size)
{
    /* The drivers themselves are linked to be resolved at once (-z now), so that nothing is found
     * missing later. Of what libpq brings along, Kerberos is not: 1100 functions, which a
     * connection seldom calls, and to look them all up was a seventh of the loading. */
    const int how = RTLD_LAZY | RTLD_LOCAL;
    char path[4096];
    Dl_info here;
    void *library = dlopen(soname, how);
    const char *slash;
    int length;

    if (library != NULL)
        return library;
    keep_cause(cause, cause_size, soname);
    if (strncmp(cause, soname, strlen(soname)) != 0 || strstr(cause, "No such file") == NULL ||
        dladdr((const void *)entries, &here) == 0 || here.dli_fname == NULL)
        return NULL;
    slash = strrchr(here.dli_fname, '/');
    if (slash == NULL)
        return NULL;
    length = snprintf(
        path, sizeof path, "%.*s/%s", (int)(slash - here.dli_fname), here.dli_fname, soname);
    if (length < 0 || (size_t)length >= sizeof path)
        return NULL;
    library = dlopen(path, how);
    if (library == NULL)
        keep_cause(cause, cause_size, soname);
    return library;
}

/* The linker says why only in words. With no descriptor left it finds no file, whatever is
 * installed: 0, or EMFILE or ENFILE. */
static int descriptors_errno(void)
{
    int descriptor = open("/", O_RDONLY | O_CLOEXEC);
    int number = descriptor < 0 ? errno : 0;

    if (descriptor >= 0)
        (void)close(descriptor);
    return number == EMFILE || number == ENFILE ? number : 0;
}

/* A library may also be refused for its file system or its kind, in the same words: where the memory
 * of a process has no limit that is it. 0, or ENOMEM. */
static int memory_errno(const char *cause)
{
    struct rlimit limit;

    return (strstr(cause, "failed to map segment") != NULL ||
               strstr(cause, "allocate memory") != NULL) &&
            getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
        ? ENOMEM
        : 0;
}

static dblock_status explain(
    const struct driver_entry *entry, const char *cause, struct dblock_error *reterr)
{
    int number = descriptors_errno();
    dblock_status status;

    if (number == 0)
        number = memory_errno(cause);
    status = fail(reterr, number != 0 ? DBLOCK_E_SYSTEM : DBLOCK_E_DRIVER);
    if (reterr == NULL)
        return status;
    (void)snprintf(reterr->message, sizeof reterr->message, "cannot load the driver for %s: %s",
        entry->scheme, number == ENOMEM  ? "out of memory"
            : number != 0 ? "out of file descriptors"
                          : cause);
    if (number != 0)
        (void)snprintf(reterr->hint, sizeof reterr->hint,
            number == ENOMEM       ? "raise the limit of memory (ulimit -v)"
                : number == EMFILE ? "raise the limit of open files (ulimit -n)"
                                   : "the whole system has none left (sysctl fs.file-max)");
    else
        (void)snprintf(reterr->hint, sizeof reterr->hint,
            "install the package %s, of the same version as libdblock", entry->package);
    reterr->native_code = number;
    reterr->is_transient = number != 0;
    return status;
}

dblock_status dblock_driver_load(
    const char *url, const dblock_driver **ret_driver, struct dblock_error *reterr)
{
    const struct driver_entry *entry;
    char cause[300];
    driver_fn function;
    void *library;
    void *symbol;

    if (url == NULL || ret_driver == NULL) {
        (void)fail(reterr, DBLOCK_E_ARGUMENT);
        if (reterr != NULL)
            (void)snprintf(reterr->message, sizeof reterr->message, "%s is NULL",
                url == NULL ? "url" : "ret_driver");
        return DBLOCK_E_ARGUMENT;
    }
    entry = find_entry(url);
    if (entry == NULL) {
        (void)fail(reterr, DBLOCK_E_ARGUMENT);
        if (reterr != NULL) {
            /* Only the scheme: what follows may hold a password. */
            size_t length = strcspn(url, ":");

            if (url[length] == ':' && length <= 32)
                (void)snprintf(reterr->message, sizeof reterr->message,
                    "no driver for URLs that begin with \"%.*s:\"", (int)length, url);
            else
                (void)snprintf(reterr->message, sizeof reterr->message,
                    "the URL does not begin with the name of a database");
            (void)snprintf(reterr->hint, sizeof reterr->hint,
                "it begins with postgresql:, postgres:, mysql:, mariadb: or sqlite:");
        }
        return DBLOCK_E_ARGUMENT;
    }

    library = open_library(entry->soname, cause, sizeof cause);
    symbol = library != NULL ? dlsym(library, entry->function) : NULL;
    if (symbol == NULL) {
        if (library != NULL)
            keep_cause(cause, sizeof cause, entry->soname);
        /* The library is left loaded: taking it out again gains nothing, and
         * client libraries do not all survive it. */
        return explain(entry, cause, reterr);
    }
    /* ISO C knows no way from an object pointer to a function pointer; POSIX
     * promises that the bytes are the same. */
    memcpy(&function, &symbol, sizeof function);
    *ret_driver = function();
    return DBLOCK_OK;
}
