#define _GNU_SOURCE
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "CLinux.h"

_Static_assert(sizeof(struct clx_mmsg) == sizeof(struct mmsghdr), "clx_mmsg must match mmsghdr");
_Static_assert(offsetof(struct clx_mmsg, len) == offsetof(struct mmsghdr, msg_len), "clx_mmsg must match mmsghdr");

int clx_recvmmsg(int fd, struct clx_mmsg *m, unsigned n, int flags) { return recvmmsg(fd, (struct mmsghdr *)m, n, flags, 0); }
int clx_sendmmsg(int fd, struct clx_mmsg *m, unsigned n, int flags) { return sendmmsg(fd, (struct mmsghdr *)m, n, flags); }
_Static_assert(sizeof(struct clx_source) >= CMSG_SPACE(sizeof(struct in6_pktinfo)), "clx_source must hold what is sent");

int clx_want_local_addresses(int fd, int family) {
  int on = 1;
  if (family == AF_INET6) return setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
  return setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
}

int clx_allow_absent_address(int fd, int family) {
  int on = 1;
  if (family == AF_INET6) return setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof on);
  return setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof on);
}

int clx_watch_network(void) {
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return -1;
  struct sockaddr_nl address = {
    .nl_family = AF_NETLINK,
    .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE};
  if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
  int code = errno;
  close(fd);
  errno = code;
  return -1;
}

ssize_t clx_receive_at(int fd, void *bytes, size_t room, struct sockaddr_storage *from, struct sockaddr_storage *local) {
  uint64_t control[32];
  struct iovec vector = {.iov_base = bytes, .iov_len = room};
  struct msghdr header = {
    .msg_name = from, .msg_namelen = sizeof *from, .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control,
    .msg_controllen = sizeof control};
  local->ss_family = AF_UNSPEC;
  ssize_t count = recvmsg(fd, &header, 0);
  if (count < 0) return count;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      struct in_pktinfo info;
      memcpy(&info, CMSG_DATA(c), sizeof info);
      struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = info.ipi_spec_dst};
      memcpy(local, &address, sizeof address);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      struct in6_pktinfo info;
      memcpy(&info, CMSG_DATA(c), sizeof info);
      struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = info.ipi6_addr};
      memcpy(local, &address, sizeof address);
    }
  }
  return count;
}

void clx_send_from(struct msghdr *header, struct clx_source *source, const struct sockaddr_storage *local) {
  memset(source, 0, sizeof *source);
  struct cmsghdr *c = (struct cmsghdr *)source->bytes;
  header->msg_control = source->bytes;
  if (local->ss_family == AF_INET6) {
    struct in6_pktinfo info = {.ipi6_addr = ((const struct sockaddr_in6 *)local)->sin6_addr};
    c->cmsg_level = IPPROTO_IPV6, c->cmsg_type = IPV6_PKTINFO, c->cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(c), &info, sizeof info);
    header->msg_controllen = CMSG_SPACE(sizeof info);
  } else {
    struct in_pktinfo info = {.ipi_spec_dst = ((const struct sockaddr_in *)local)->sin_addr};
    c->cmsg_level = IPPROTO_IP, c->cmsg_type = IP_PKTINFO, c->cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(c), &info, sizeof info);
    header->msg_controllen = CMSG_SPACE(sizeof info);
  }
}

int clx_queued_error(struct msghdr *header) {
  for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
    if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) || (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR)) {
      // the first member of struct sock_extended_err
      uint32_t code = 0;
      memcpy(&code, CMSG_DATA(c), sizeof code);
      return (int)code;
    }
  }
  return 0;
}

int clx_accept(int fd, struct sockaddr *address, socklen_t *length) {
  return accept4(fd, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}
int clx_set_thread_name(const char *name) { return pthread_setname_np(pthread_self(), name); }
void clx_get_thread_name(char name[16]) { prctl(PR_GET_NAME, name); }
int clx_set_affinity(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}
int clx_get_affinity(int32_t *cpus, int32_t room) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set)) return -1;
  int32_t count = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE && count < room; cpu++)
    if (CPU_ISSET(cpu, &set)) cpus[count++] = cpu;
  return count;
}
int clx_set_affinities(const int32_t *cpus, int32_t count) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int32_t index = 0; index < count; index++) CPU_SET(cpus[index], &set);
  return sched_setaffinity(0, sizeof set, &set);
}
int clx_thread_id(void) { return (int)syscall(SYS_gettid); }
int clx_set_realtime(int priority) {
  struct sched_param parameter = {.sched_priority = priority};
  return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameter);
}

static const struct { int number; const char *name; } faults[] = {
  {SIGILL, "SIGILL"}, {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGSEGV, "SIGSEGV"}};
enum { fault_count = sizeof faults / sizeof *faults };

// Only what signal-safety(7) allows.
static void crashed(int number, siginfo_t *info, void *context) {
  (void)context;
  char thread[16] = "?", line[96];
  clx_get_thread_name(thread);
  const char *name = "a signal";
  for (int index = 0; index < fault_count; index++)
    if (faults[index].number == number) name = faults[index].name;
  const char *words[] = {"trunkline: ", name, " in thread ", thread, ": the process ends\n"};
  size_t length = 0;
  for (size_t word = 0; word < sizeof words / sizeof *words; word++)
    for (const char *c = words[word]; *c && length < sizeof line; c++) line[length++] = *c;
  struct pollfd out = {.fd = 2, .events = POLLOUT};
  if (poll(&out, 1, 0) == 1 && (out.revents & POLLOUT)) (void)!write(2, line, length);
  // A fault comes again when its instruction is run again, now with the default action, and the core shows its place. A signal that was
  // sent does not, nor does a breakpoint.
  if (info->si_code <= 0 || number == SIGTRAP) raise(number);
}
void clx_crash_plainly(void) {
  for (int index = 0; index < fault_count; index++) {
    struct sigaction action = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_RESETHAND};
    sigaction(faults[index].number, &action, NULL);
  }
  signal(SIGQUIT, SIG_DFL);
}

int clx_set_dumpable(int on) { return prctl(PR_SET_DUMPABLE, on, 0, 0, 0); }
int clx_is_dumpable(void) { return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0); }

#ifndef TRUNKLINE_COMMIT
#define TRUNKLINE_COMMIT ""
#endif

const char *clx_commit(void) { return TRUNKLINE_COMMIT; }

// glibc hands them to each constructor. Swift's CommandLine reads /proc/self/cmdline, which a container may not have.
static int argument_count;
static char **arguments;
__attribute__((constructor)) static void keep_arguments(int count, char **values) { argument_count = count, arguments = values; }
int clx_argument_count(void) { return argument_count; }
const char *clx_argument(int index) { return index >= 0 && index < argument_count ? arguments[index] : ""; }
