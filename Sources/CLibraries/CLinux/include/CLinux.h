#pragma once
// What SwiftGlibc lacks: epoll, eventfd, timerfd, batch UDP, thread names and affinity.
// _GNU_SOURCE must stay out of this header (it changes fd_set under Glibc's module): it is defined in the .c only.
#include <netinet/in.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/types.h>

/// Same layout as the kernel's struct mmsghdr; a static assertion in CLinux.c holds it.
struct clx_mmsg { struct msghdr hdr; unsigned len; };

int clx_recvmmsg(int fd, struct clx_mmsg *messages, unsigned count, int flags);
int clx_sendmmsg(int fd, struct clx_mmsg *messages, unsigned count, int flags);
/// From now on `clx_receive_at` says which address of ours a datagram was sent to (IP_PKTINFO, IPV6_RECVPKTINFO). 0, or -1 with errno.
int clx_want_local_addresses(int fd, int family);
/// Before `bind`: an address that the machine does not have is taken, and works once it is there (IP_FREEBIND, IPV6_FREEBIND). 0, or -1 with errno.
int clx_allow_absent_address(int fd, int family);
/// A non-blocking, close-on-exec socket of NETLINK_ROUTE that hears of links, addresses and routes of both families; -1 with errno.
int clx_watch_network(void);
/// One datagram with its source and, of the local address, family and address; AF_UNSPEC where the kernel does not say.
ssize_t clx_receive_at(int fd, void *bytes, size_t room, struct sockaddr_storage *from, struct sockaddr_storage *local);
/// Room for `clx_send_from`, aligned as the kernel wants it.
struct clx_source { uint64_t bytes[8]; };
/// Lets the kernel send a datagram from `local`: writes into `source`, which must live as long as `header` is used.
void clx_send_from(struct msghdr *header, struct clx_source *source, const struct sockaddr_storage *local);
/// The errno of an ICMP error that `recvmsg` with MSG_ERRQUEUE has read, among whatever else the control data hold; 0 without one.
int clx_queued_error(struct msghdr *header);
/// accept4 with a non-blocking, close-on-exec result.
int clx_accept(int fd, struct sockaddr *address, socklen_t *length);
int clx_set_thread_name(const char *name);
/// The calling thread's name with a zero behind it.
void clx_get_thread_name(char name[16]);
int clx_set_affinity(int cpu);
/// Cores that the calling thread may use: their numbers, at most `room`; how many, or -1.
int clx_get_affinity(int32_t *cpus, int32_t room);
int clx_set_affinities(const int32_t *cpus, int32_t count);
int clx_thread_id(void);
/// Schedules the calling thread by SCHED_FIFO at `priority`, threads that it starts later as usual. 0, or -1 with errno.
int clx_set_realtime(int priority);
/// From now on SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE and SIGSEGV write one line that names the thread and then do what is their default,
/// and SIGQUIT does its default. For the whole process.
void clx_crash_plainly(void);
/// Whether the kernel writes a core of this process, and lets another one of its user read its memory (PR_SET_DUMPABLE). 0, or -1 with errno.
int clx_set_dumpable(int on);
/// As it is now.
int clx_is_dumpable(void);
/// The program's arguments as the kernel gave them, without /proc; the first is its name.
int clx_argument_count(void);
const char *clx_argument(int index);
/// The commit that the build was told of (TRUNKLINE_COMMIT); empty if none.
const char *clx_commit(void);

