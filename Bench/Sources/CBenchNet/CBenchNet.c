#define _GNU_SOURCE
#include "CBenchNet.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in loopback(uint16_t port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

int bn_udp(uint16_t *port) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, size = 1 << 20;
  if (fd < 0) return -errno;
  struct sockaddr_in a = loopback(0);
  socklen_t length = sizeof a;
  setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  if (bind(fd, (struct sockaddr *)&a, sizeof a) || getsockname(fd, (struct sockaddr *)&a, &length)) {
    int error = errno;
    close(fd);
    return -error;
  }
  *port = ntohs(a.sin_port);
  return fd;
}

long bn_receive(int fd, void *buffer, long room, int64_t *stamp, uint16_t *from) {
  struct iovec v = {buffer, (size_t)room};
  struct sockaddr_in a;
  union { char bytes[128]; struct cmsghdr align; } control;
  struct msghdr m = {.msg_name = &a, .msg_namelen = sizeof a, .msg_iov = &v, .msg_iovlen = 1,
                     .msg_control = &control, .msg_controllen = sizeof control};
  long n = recvmsg(fd, &m, MSG_DONTWAIT);
  if (n < 0) return -1;
  *from = ntohs(a.sin_port);
  *stamp = 0;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
      struct timespec t;
      memcpy(&t, CMSG_DATA(c), sizeof t);
      *stamp = t.tv_sec * 1000000000LL + t.tv_nsec;
    }
  return n;
}

long bn_send(int fd, const void *bytes, long count, uint16_t port) {
  struct sockaddr_in a = loopback(port);
  return sendto(fd, bytes, (size_t)count, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&a, sizeof a);
}

void bn_close(int fd) { close(fd); }
int bn_exists(const char *path) { return access(path, X_OK) == 0; }
void bn_pause(int64_t nanoseconds) { usleep((useconds_t)(nanoseconds / 1000)); }

static int64_t clock_ns(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}
int64_t bn_realtime(void) { return clock_ns(CLOCK_REALTIME); }
int64_t bn_monotonic(void) { return clock_ns(CLOCK_MONOTONIC); }

void bn_sleep(int64_t until) {
  struct timespec t = {until / 1000000000, until % 1000000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
}

int bn_poller(void) { return epoll_create1(EPOLL_CLOEXEC); }
int bn_watch(int poller, int fd, uint32_t index) {
  struct epoll_event e = {.events = EPOLLIN, .data.u32 = index};
  return epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e);
}
int bn_wait(int poller, uint32_t *indexes, int most, int64_t nanoseconds) {
  struct epoll_event events[128];
  if (most > 128) most = 128;
  if (nanoseconds < 0) nanoseconds = 0;
  struct timespec t = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  int n = epoll_pwait2(poller, events, most, &t, NULL);
  for (int i = 0; i < n; i++) indexes[i] = events[i].data.u32;
  return n;
}

int bn_pin(pid_t pid, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(pid, sizeof set, &set);
}
static int hurry(int priority, int flags) {
  struct sched_param parameter = {.sched_priority = priority};
  return sched_setscheduler(0, SCHED_FIFO | flags, &parameter);
}
int bn_hurry(int priority) {
  return hurry(priority, SCHED_RESET_ON_FORK);
}
int bn_cores(int *cpus, int most) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set)) return 0;
  int n = 0;
  for (int i = 0; i < CPU_SETSIZE && n < most; i++)
    if (CPU_ISSET(i, &set)) cpus[n++] = i;
  return n;
}

static int bare_socket(struct sockaddr_in *a) {
  uint16_t port = 0;
  int fd = bn_udp(&port), off = 0;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &off, sizeof off);
  *a = loopback(port);
  return fd;
}

static int64_t thread_cpu(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

double bn_bare_relay(int calls, int rounds) {
  enum { batch = 32, room = 2048 };
  struct { int trunk, carrier; struct sockaddr_in trunk_at, carrier_at; } *call = calloc((size_t)calls, sizeof *call);
  struct sockaddr_in app_at, apps_at;
  int app = bare_socket(&app_at), apps = bare_socket(&apps_at), ok = call && app >= 0 && apps >= 0;
  int poller = bn_poller(), hearers = bn_poller();
  bn_watch(poller, app, (uint32_t)calls);
  bn_watch(hearers, apps, 0);
  for (int i = 0; call && i < calls; i++) {
    call[i].trunk = bare_socket(&call[i].trunk_at);
    call[i].carrier = bare_socket(&call[i].carrier_at);
    ok = ok && call[i].trunk >= 0 && call[i].carrier >= 0;
    bn_watch(poller, call[i].trunk, (uint32_t)i);
    bn_watch(hearers, call[i].carrier, (uint32_t)i);
  }
  static char bytes[batch][room];
  struct mmsghdr m[batch];
  struct iovec v[batch];
  struct sockaddr_in from[batch];
  memset(m, 0, sizeof m);
  for (int i = 0; i < batch; i++) {
    v[i] = (struct iovec){bytes[i], room};
    m[i].msg_hdr = (struct msghdr){.msg_name = &from[i], .msg_iov = &v[i], .msg_iovlen = 1};
  }
  int64_t used = 0, packets = 0;
  // Twenty calls speak in each millisecond of 400: so many are ready at a time.
  for (int round = 0; ok && round < rounds; round++)
    for (int first = 0; first + 20 <= calls; first += 20) {
      for (int i = first; i < first + 20; i++) {
        sendto(call[i].carrier, bytes[0], 172, MSG_DONTWAIT, (struct sockaddr *)&call[i].trunk_at, sizeof call[i].trunk_at);
        sendto(apps, bytes[0], 188, MSG_DONTWAIT, (struct sockaddr *)&app_at, sizeof app_at);
      }
      int64_t began = thread_cpu();
      uint32_t ready[64];
      int n = bn_wait(poller, ready, 64, 0), to_apps = 0, turn = first;
      for (int k = 0; k < n; k++) {
        int is_app = ready[k] == (uint32_t)calls;
        for (int i = 0; i < batch; i++) {
          v[i].iov_len = room;
          m[i].msg_hdr.msg_namelen = sizeof from[i];
        }
        int got = recvmmsg(is_app ? app : call[ready[k]].trunk, m, is_app ? batch : 2, MSG_DONTWAIT, NULL);
        packets += got > 0 ? got : 0;
        if (!is_app) to_apps += got > 0 ? got : 0;
        for (int i = 0; is_app && i < got; i++, turn++)
          sendto(call[turn % calls].trunk, bytes[i], 172, MSG_DONTWAIT, (struct sockaddr *)&call[turn % calls].carrier_at,
                 sizeof apps_at);
      }
      for (int i = 0; i < batch; i++) {
        v[i].iov_len = 188;
        from[i] = apps_at;
        m[i].msg_hdr.msg_namelen = sizeof apps_at;
      }
      while (to_apps > 0) {
        int done = sendmmsg(app, m, (unsigned)(to_apps < batch ? to_apps : batch), MSG_DONTWAIT);
        if (done <= 0) break;
        to_apps -= done;
      }
      used += thread_cpu() - began;
      while (recv(apps, bytes[0], room, MSG_DONTWAIT) > 0) {}
      for (int i = first; i < first + 20; i++)
        while (recv(call[i].carrier, bytes[0], room, MSG_DONTWAIT) > 0) {}
      n = bn_wait(hearers, ready, 64, 0);
    }
  for (int i = 0; call && i < calls; i++) {
    close(call[i].trunk);
    close(call[i].carrier);
  }
  free(call);
  close(app);
  close(apps);
  close(poller);
  close(hearers);
  return ok && packets > 0 ? (double)used / (double)packets : 0;
}

struct echo { int fd, cpu; atomic_int over; };

static void *echo_run(void *argument) {
  struct echo *echo = argument;
  char bytes[2048];
  if (echo->cpu >= 0) bn_pin(0, echo->cpu);
  hurry(1, 0);
  int poller = bn_poller();
  bn_watch(poller, echo->fd, 0);
  while (!atomic_load(&echo->over)) {
    struct epoll_event event;
    struct sockaddr_in from;
    socklen_t length = sizeof from;
    epoll_wait(poller, &event, 1, 100);
    for (long n; (n = recvfrom(echo->fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &length)) > 0; length = sizeof from)
      sendto(echo->fd, bytes, (size_t)n, 0, (struct sockaddr *)&from, length);
  }
  close(poller);
  return NULL;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int echoes(int fd, int count, int many, double *microseconds) {
  char bytes[2048];
  uint16_t from;
  for (int64_t stamp, sent; count < many && bn_receive(fd, bytes, sizeof bytes, &stamp, &from) > 0;) {
    memcpy(&sent, bytes, sizeof sent);
    microseconds[count++] = (double)(stamp - sent) / 1000;
  }
  return count;
}

int bn_bare_echo(int cpu, int many, double *microseconds) {
  uint16_t port = 0, own = 0;
  struct echo echo = {.fd = bn_udp(&port), .cpu = cpu};
  int fd = bn_udp(&own), count = 0, off = 0;
  pthread_t thread;
  if (echo.fd < 0 || fd < 0 || pthread_create(&thread, NULL, echo_run, &echo)) return 0;
  setsockopt(echo.fd, SOL_SOCKET, SO_TIMESTAMPNS, &off, sizeof off);
  int64_t due = bn_monotonic();
  for (int sent = 0; sent < many; sent += 10) {
    char bytes[172] = {0};
    bn_sleep(due += 1000000);
    count = echoes(fd, count, many, microseconds);
    for (int i = 0; i < 10; i++) {
      int64_t now = bn_realtime();
      memcpy(bytes, &now, sizeof now);
      bn_send(fd, bytes, sizeof bytes, port);
    }
  }
  usleep(20000);
  count = echoes(fd, count, many, microseconds);
  atomic_store(&echo.over, 1);
  pthread_join(thread, NULL);
  close(fd);
  close(echo.fd);
  qsort(microseconds, (size_t)count, sizeof *microseconds, ascending);
  return count;
}

int64_t bn_process_cpu(pid_t pid) {
  char path[96];
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR *tasks = opendir(path);
  if (!tasks) return 0;
  int64_t sum = 0;
  for (struct dirent *e; (e = readdir(tasks));) {
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", pid, e->d_name);
    FILE *f = fopen(path, "r");
    long long used;
    if (!f) continue;
    if (fscanf(f, "%lld", &used) == 1) sum += used;
    fclose(f);
  }
  closedir(tasks);
  return sum;
}

long bn_process_resident(pid_t pid) {
  char path[64];
  long size, resident = 0;
  snprintf(path, sizeof path, "/proc/%d/statm", pid);
  FILE *f = fopen(path, "r");
  if (!f) return 0;
  if (fscanf(f, "%ld %ld", &size, &resident) != 2) resident = 0;
  fclose(f);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

pid_t bn_spawn(const char *const *arguments, int cpu) {
  pid_t pid = fork();
  if (pid) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (cpu >= 0) bn_pin(0, cpu);
  hurry(1, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  int null = open("/dev/null", O_RDWR);
  dup2(null, 0);
  dup2(null, 1);
  dup2(null, 2);
  execvp(arguments[0], (char *const *)arguments);
  _exit(127);
}

void bn_end(pid_t pid) {
  if (pid <= 0) return;
  kill(pid, SIGTERM);
  for (int i = 0; i < 200; i++) {
    if (waitpid(pid, NULL, WNOHANG) == pid) return;
    usleep(10000);
  }
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
}
