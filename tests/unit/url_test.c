/* SPDX-License-Identifier: MIT */
/* url_test.c - what a client library takes for a password is found, hidden in place, and in no
 * message. */
#include "cli/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NO, YES };

static const struct {
    const char *url;
    int has_password;
    const char *hidden;
    const char *for_people;
} cases[] = {
    {"postgresql://h/d", NO, "postgresql://h/d", "postgresql://h/d"},
    {"postgresql://u@h:5432/d?user=u", NO, "postgresql://u@h:5432/d?user=u",
        "postgresql://h:5432/d"},
    {"postgresql://u:SECRET@h/d", YES, "postgresql://u:xxxxxx@h/d", "postgresql://h/d"},
    {"mysql://u:SE/CR@ET@h/d", YES, "mysql://u:xxxxxxxx@h/d", "mysql://h/d"},
    /* The login of libpq goes to the first '@', if no '/' comes before it. */
    {"postgresql://u:SECRET?x@h/d", YES, "postgresql://u:xxxxxxxx@h/d", "postgresql://h/d"},
    {"postgresql://u:SEC?R@ET@h/d", YES, "postgresql://u:xxxxxxxx@h/d", "postgresql://h/d"},
    {"postgresql://u:SE?password=C@h/d", YES, "postgresql://u:xxxxxxxxxxxxxxxxx",
        "postgresql://h/d"},
    /* Names of options are decoded, and the values of some are as good as a password. */
    {"postgresql://h/d?password=SECRET&user=u", YES, "postgresql://h/d?password=xxxxxx&user=u",
        "postgresql://h/d"},
    {"postgresql://h/d?user=u&p%61ssword=SECRET", YES,
        "postgresql://h/d?user=u&p%61ssword=xxxxxx", "postgresql://h/d"},
    {"postgresql://h/d?%70assword=SECRET", YES, "postgresql://h/d?%70assword=xxxxxx",
        "postgresql://h/d"},
    {"postgresql://h/d?passwor%64=SECRET&a=b&sslpasswor%64=S", YES,
        "postgresql://h/d?passwor%64=xxxxxx&a=b&sslpasswor%64=x", "postgresql://h/d"},
    {"postgresql://h/d?oauth_client_secre%74=S&scram%5Fclient_key=T", YES,
        "postgresql://h/d?oauth_client_secre%74=x&scram%5Fclient_key=x", "postgresql://h/d"},
    {"postgresql://h/d?password=&sslpassword=S", YES, "postgresql://h/d?password=&sslpassword=x",
        "postgresql://h/d"},
    {"postgresql://u:S@h/d?password=SE@CR", YES, "postgresql://u:xxxxxxxxxxxxxxxxxxxx",
        "postgresql://h/d"},
    {"postgresql://u:@h/d?password=", NO, "postgresql://u:@h/d?password=", "postgresql://h/d"},
    {"postgresql://h/d?user=%70assword&passfile=f", NO,
        "postgresql://h/d?user=%70assword&passfile=f", "postgresql://h/d"},
    {"postgresql://h/d?p%6=a&p%=b&%", NO, "postgresql://h/d?p%6=a&p%=b&%", "postgresql://h/d"},
    /* Nobody takes this for a password but who wrote it, or did not. */
    {"mysql://u:SE/C?RET@h/d", NO, "mysql://u:xxxxxxxx@h/d", NULL},
    {"postgresql://h:5432/d?user=a@b", NO, "postgresql://h:xxxxxxxxxxxxx@b",
        "postgresql://h:5432/d"},
    {"host=h password=SECRET", NO, "host=h password=xxxxxx", NULL},
    {"sqlite:/srv/secrets/of-somebody/a=b/lock.db", NO, NULL,
        "sqlite:/srv/secrets/of-somebody/a=b/lock.db"},
    {"", NO, "", ""},
};

static void passwords_are_found_and_hidden(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *hidden = strdup(cases[i].url);
        char *for_people = url_for_people(cases[i].url);

        assert_non_null(hidden);
        assert_non_null(for_people);
        print_message("%s\n", cases[i].url);
        assert_int_equal(url_has_password(cases[i].url), cases[i].has_password);
        url_hide_password(hidden);
        assert_int_equal(strlen(hidden), strlen(cases[i].url));
        if (cases[i].hidden != NULL)
            assert_string_equal(hidden, cases[i].hidden);
        if (cases[i].for_people != NULL)
            assert_string_equal(for_people, cases[i].for_people);
        free(hidden);
        free(for_people);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passwords_are_found_and_hidden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
