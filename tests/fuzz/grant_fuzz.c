/* SPDX-License-Identifier: MIT */
/* grant_fuzz.c - any text as that of a grant, which scripts hand around in the environment: refused,
 * or a lock whose text means the same. And what the command reads off such a text. */
#include "fuzz.h"

#include <dblock/dblock.h>

#include "cli/grant_name.h"
#include "sim_driver.h"

static dblock_client *client(void)
{
    static dblock_client *shared;
    struct dblock_error error;

    if (shared == NULL)
        EXPECT(dblock_open(sim_driver(), "sim:fuzz", NULL, &shared, &error) == DBLOCK_OK);
    return shared;
}

static void expect_same(dblock_lock *lock)
{
    char text[DBLOCK_GRANT_TEXT_SIZE + 3 * DBLOCK_NAME_MAX];
    char name[DBLOCK_NAME_MAX + 1];
    struct dblock_error error;
    dblock_lock *again = NULL;

    EXPECT(dblock_lock_export(lock, text, sizeof text, &error) == DBLOCK_OK);
    EXPECT(grant_name(text, name) && strcmp(name, dblock_lock_name(lock)) == 0);
    EXPECT(dblock_lock_import(client(), text, &again, &error) == DBLOCK_OK);
    EXPECT(strcmp(dblock_lock_name(again), dblock_lock_name(lock)) == 0);
    EXPECT(strcmp(dblock_lock_owner(again), dblock_lock_owner(lock)) == 0);
    EXPECT(dblock_lock_strategy(again) == dblock_lock_strategy(lock));
    dblock_lock_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char begin[] = "dblock1:lease:0123456789abcdef0123456789abcdef:17:";
    char name[DBLOCK_NAME_MAX + 1];
    struct dblock_error error;
    dblock_lock *lock = NULL;
    dblock_status status;
    char *rest, *text;
    size_t kept;

    if (size == 0)
        return 0;
    /* so much of a good one, and the input after it */
    kept = bytes[0] % sizeof begin;
    rest = fuzz_text(bytes + 1, size - 1);
    text = fuzz_join(begin, kept, rest);
    status = dblock_lock_import(client(), text, &lock, &error);
    (void)grant_name(text, name);
    EXPECT((status == DBLOCK_OK) == (lock != NULL));
    if (lock != NULL)
        expect_same(lock);
    else
        EXPECT(status == error.status && error.message[0] != 0);
    dblock_lock_free(lock);
    free(text);
    free(rest);
    return 0;
}
