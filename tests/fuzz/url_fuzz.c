/* SPDX-License-Identifier: MIT */
/* url_fuzz.c - any text as a database's URL: it is taken apart or refused, nothing is connected to,
 * and no message shows the password in it. */
#include "fuzz.h"

#include <dblock/dblock.h>
#include <dblock/mysql.h>
#include <dblock/pgsql.h>

#define SECRET "hunter2-never-print-me"

static void expect_no_secret(const struct dblock_error *error)
{
    EXPECT(strstr(error->message, SECRET) == NULL);
    EXPECT(strstr(error->hint, SECRET) == NULL);
}

static void open_url(const dblock_driver *driver, const char *url)
{
    dblock_client *client = NULL;
    struct dblock_error error;
    dblock_status status = dblock_open(driver, url, NULL, &client, &error);

    EXPECT((status == DBLOCK_OK) == (client != NULL));
    if (status != DBLOCK_OK) {
        EXPECT(status < 0 && error.status == status && error.message[0] != 0);
        expect_no_secret(&error);
    }
    dblock_close(client);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const struct {
        const char *begin; /* with the secret where a password may stand, and the input after it */
        const dblock_driver *(*driver)(void);
    } kinds[] = {
        { "", dblock_pgsql_driver },
        { "", dblock_mysql_driver },
        { "postgresql://", dblock_pgsql_driver },
        { "postgresql://u:" SECRET, dblock_pgsql_driver },
        { "postgresql://u:" SECRET "@h/d?", dblock_pgsql_driver },
        { "host=h password=" SECRET, dblock_pgsql_driver },
        { "host=h password='" SECRET, dblock_pgsql_driver },
        { "mysql://", dblock_mysql_driver },
        { "mysql://u:" SECRET, dblock_mysql_driver },
        { "mysql://u:" SECRET "@h/d?", dblock_mysql_driver },
        { "mysql://h/d?password=" SECRET "&", dblock_mysql_driver },
    };
    char *rest, *url;
    size_t i;

    if (size == 0)
        return 0;
    i = bytes[0] % (sizeof kinds / sizeof kinds[0]);
    rest = fuzz_text(bytes + 1, size - 1);
    if (strstr(rest, "hunter2") != NULL) { /* the fuzzer reads what it is compared with */
        free(rest);
        return 0;
    }
    url = fuzz_join(kinds[i].begin, strlen(kinds[i].begin), rest);
    open_url(kinds[i].driver(), url);
    free(url);
    free(rest);
    return 0;
}
