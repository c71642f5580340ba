/*
 * The floor: the least that a client can do for select-only transactions, prepared, over a Unix socket.
 *
 *   floor -h DIR [-p PORT] [-U USER] [-d DBNAME] [-a ROWS] [-c CLIENTS] -t TRANSACTIONS | -T SECONDS
 *
 * One thread, one epoll loop, one read and one write per transaction; a reply is known by its last six bytes. No time is
 * taken per transaction, nothing is counted but transactions, nothing can be configured, and an error ends the program.
 * TRANSACTIONS is per client, as in pgbench. ROWS is the number of rows in pgbench_accounts. The server has to trust us.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char SELECT[] = "SELECT abalance FROM pgbench_accounts WHERE aid = $1;";
/* Bind of statement s to the unnamed portal with one parameter in text format; its length follows. */
static const char BIND[] = "B\0\0\0\0\0s\0\0\0\0\1\0\0\0";
/* Results in text format; Describe of the portal; Execute without a limit; Sync. */
static const char EXECUTE[] = "\0\0D\0\0\0\6P\0E\0\0\0\t\0\0\0\0\0S\0\0\0\4";

static volatile sig_atomic_t over;
static uint64_t state = 0x9e3779b97f4a7c15;
static char buffer[65536];

static void end(int signal)
{
    (void) signal;
    over = 1;
}

static void die(const char *what)
{
    fprintf(stderr, "floor: %s: %s\n", what, errno ? strerror(errno) : "not what was expected");
    exit(1);
}

static uint32_t draw(uint32_t rows)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return 1 + (uint32_t) (((state >> 32) * rows) >> 32);
}

static void send_all(int fd, const char *bytes, size_t length)
{
    ssize_t sent = write(fd, bytes, length);
    if (sent != (ssize_t) length)
        die("could not send");
}

static size_t put(char *out, const void *bytes, size_t length)
{
    memcpy(out, bytes, length);
    return length;
}

static void set_length(char *at, size_t length)
{
    at[0] = (char) (length >> 24), at[1] = (char) (length >> 16), at[2] = (char) (length >> 8), at[3] = (char) length;
}

/* Whether a reply is complete: it ends with ReadyForQuery. */
static int receive(int fd)
{
    ssize_t got = read(fd, buffer, sizeof buffer);
    if (got <= 0 || buffer[0] == 'E')
        die("could not receive");
    return got >= 6 && memcmp(buffer + got - 6, "Z\0\0\0\5I", 6) == 0;
}

static int open_session(const struct sockaddr_un *address, const char *user, const char *dbname)
{
    char out[1024];
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *) address, sizeof *address) != 0)
        die(address->sun_path);
    size_t at = 4 + put(out + 4, "\0\3\0\0", 4);
    at += (size_t) snprintf(out + at, 900, "user%c%s%cdatabase%c%s%c", 0, user, 0, 0, dbname, 0);
    out[at++] = 0;
    set_length(out, at);
    send_all(fd, out, at);
    while (!receive(fd))
        ;
    out[0] = 'P';
    at = 5 + put(out + 5, "s", 2);
    at += put(out + at, SELECT, sizeof SELECT);
    at += put(out + at, "\0\0", 2);
    set_length(out + 1, at - 1);
    at += put(out + at, "S\0\0\0\4", 5);
    send_all(fd, out, at);
    while (!receive(fd))
        ;
    return fd;
}

static void ask(int fd, uint32_t rows)
{
    char out[64], digits[10];
    size_t at = put(out, BIND, sizeof BIND - 1), length = 0;
    for (uint32_t aid = draw(rows); aid > 0; aid /= 10)
        digits[sizeof digits - ++length] = (char) ('0' + aid % 10);
    out[at++] = (char) length;
    at += put(out + at, digits + sizeof digits - length, length);
    set_length(out + 1, at + 1); /* with the two bytes of the result formats, without the type */
    at += put(out + at, EXECUTE, sizeof EXECUTE - 1);
    send_all(fd, out, at);
}

static double seconds(struct timeval time)
{
    return (double) time.tv_sec + 1e-6 * (double) time.tv_usec;
}

int main(int argc, char **argv)
{
    const char *directory = "/tmp", *port = "5432", *user = "postgres", *dbname = "postgres";
    uint32_t rows = 100000;
    uint64_t clients = 1, transactions = 0, done = 0, asked = 0;
    unsigned length = 0;
    for (int option; (option = getopt(argc, argv, "h:p:U:d:a:c:t:T:")) != -1;)
        switch (option) {
            case 'h': directory = optarg; break;
            case 'p': port = optarg; break;
            case 'U': user = optarg; break;
            case 'd': dbname = optarg; break;
            case 'a': rows = (uint32_t) strtoul(optarg, NULL, 10); break;
            case 'c': clients = strtoull(optarg, NULL, 10); break;
            case 't': transactions = strtoull(optarg, NULL, 10); break;
            case 'T': length = (unsigned) strtoul(optarg, NULL, 10); break;
            default: return 1;
        }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/.s.PGSQL.%s", directory, port);
    int loop = epoll_create1(0), *sockets = calloc(clients, sizeof *sockets);
    for (uint64_t i = 0; i < clients; i++) {
        sockets[i] = open_session(&address, user, dbname);
        struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = sockets[i]};
        if (epoll_ctl(loop, EPOLL_CTL_ADD, sockets[i], &event) != 0)
            die("epoll");
    }
    signal(SIGALRM, end);
    alarm(length);
    uint64_t limit = transactions ? transactions * clients : UINT64_MAX;
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (; asked < clients && asked < limit; asked++)
        ask(sockets[asked], rows);
    while (!over && done < limit) {
        struct epoll_event events[256];
        int count = epoll_wait(loop, events, 256, -1);
        for (int i = 0; i < count; i++)
            if (receive(events[i].data.fd)) {
                done++;
                if (asked < limit) {
                    asked++;
                    ask(events[i].data.fd, rows);
                }
            }
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    double elapsed = (double) (to.tv_sec - from.tv_sec) + 1e-9 * (double) (to.tv_nsec - from.tv_nsec);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("number of transactions actually processed: %llu\n", (unsigned long long) done);
    printf("tps = %f (without initial connection time)\n", (double) done / elapsed);
    printf("cpu = %f s\n", seconds(used.ru_utime) + seconds(used.ru_stime));
    return 0;
}
