#pragma once
// Datagrams on loopback with the kernel's time of arrival, and what a process costs: for generators of calls.
#include <stdint.h>
#include <sys/types.h>

/// A non-blocking UDP socket on 127.0.0.1 with arrival stamps; its port in *port. Below 0: -errno.
int bn_udp(uint16_t *port);
/// One datagram; its length, or -1 if there is none. *stamp: CLOCK_REALTIME in ns when the kernel took it.
long bn_receive(int fd, void *buffer, long room, int64_t *stamp, uint16_t *from);
/// To 127.0.0.1; the length, or -1.
long bn_send(int fd, const void *bytes, long count, uint16_t port);
void bn_close(int fd);
int bn_exists(const char *path);
void bn_pause(int64_t nanoseconds);
int64_t bn_realtime(void);
int64_t bn_monotonic(void);
/// Until a time of bn_monotonic.
void bn_sleep(int64_t until);

int bn_poller(void);
int bn_watch(int poller, int fd, uint32_t index);
/// Indexes of the sockets with something to read, at most `most`, after at most `nanoseconds`.
int bn_wait(int poller, uint32_t *indexes, int most, int64_t nanoseconds);

/// Binds the calling thread (pid 0) or a process to a core. 0 on success.
int bn_pin(pid_t pid, int cpu);
/// Runs the calling thread before all usual ones, and before those of a lower priority, if permitted; threads and
/// processes that it starts later as usual. 0 on success.
int bn_hurry(int priority);
/// Cores this process may use.
int bn_cores(int *cpus, int most);

/// What the kernel alone takes of a relay: CPU ns a packet for `calls` calls (a multiple of 20) both ways, `rounds` times: waiting,
/// receiving from a socket for each trunk leg and one for all apps, sending on, and nothing else. 0 if sockets cannot be had.
double bn_bare_relay(int calls, int rounds);

/// How long a datagram takes to a bare thread and back that sleeps in epoll_wait on `cpu`, before all usual ones where permitted, and
/// does nothing else: `many` of them, in bursts of ten each millisecond as relayed calls send them, from the calling thread. Into
/// `microseconds`, ascending; how many came back, 0 if sockets cannot be had.
int bn_bare_echo(int cpu, int many, double *microseconds);

/// CPU time of all threads of a process in ns; 0 if it is gone. Its resident memory in KB.
int64_t bn_process_cpu(pid_t pid);
long bn_process_resident(pid_t pid);
/// Starts a program with its output thrown away, bound to `cpu` if that is not negative, before all usual ones; its pid, or below 0.
pid_t bn_spawn(const char *const *arguments, int cpu);
/// Ends a process by its pid and waits for it.
void bn_end(pid_t pid);
