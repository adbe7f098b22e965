/* SPDX-License-Identifier: MIT */
/* contract_silent.c - see contract_silent.h. The kernel completes the handshake;
 * nobody ever accepts. */
#include "contract_silent.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int contract_silent_port(void)
{
    static int port;
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    int fd;

    if (port != 0)
        return port;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, 64) != 0 || getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        abort();
    port = ntohs(address.sin_port);
    return port;
}
