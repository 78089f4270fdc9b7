import CTrunklineLinux
import Glibc

/// Signals as values for which one thread waits.
public enum ProcessSignals {
  /// Blocks every signal in the calling thread but the synchronous faults and SIGQUIT, by which an operator requests a core dump;
  /// threads that it starts inherit that.
  public static func blockAsynchronous() {
    var set = sigset_t()
    sigfillset(&set)
    for signal in [SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGABRT, SIGSYS, SIGQUIT] { sigdelset(&set, signal) }
    pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  /// Waits for one of `signals`, which must be blocked in every thread (`blockAsynchronous` first, then start threads).
  public static func wait(for signals: [Int32]) -> Int32 {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
    var got: Int32 = 0
    while sigwait(&set, &got) != 0 {}
    return got
  }

  /// A write to a closed socket returns EPIPE instead of ending the process.
  public static func ignoreBrokenPipes() { _ = signal(SIGPIPE, SIG_IGN) }

  /// As the first process of a container it inherits orphaned processes: ignoring SIGCHLD makes the kernel reap them. It has no
  /// children of its own to wait for.
  public static func reapOrphans() {
    guard getpid() == 1 else { return }
    _ = signal(SIGCHLD, SIG_IGN)
    // orphans that ended earlier, under the previous first process
    while waitpid(-1, nil, WNOHANG) > 0 {}
  }

  /// Whether one of `signals`, blocked in every thread, is pending.
  public static func isPending(_ signals: [Int32]) -> Bool {
    var set = sigset_t()
    guard sigpending(&set) == 0 else { return false }
    return signals.contains { sigismember(&set, $0) == 1 }
  }

  /// Makes a crash print one line and end the process at once, by its signal and with a core dump if those are enabled.
  ///
  /// To be called before the first thread. The Swift runtime's own handler would suspend all threads to print their backtraces;
  /// ours block its signal, and it waits seconds for each while their sockets stay open. If SWIFT_BACKTRACE contains `enable=yes`
  /// or `enable=tty`, the runtime's handler stays. Its alternate stack (sigaltstack) stays unused: after a stack overflow the
  /// kernel ends the process without the line.
  public static func endAtOnceInCrash() {
    if let setting = getenv("SWIFT_BACKTRACE"), asksForBacktrace(String(cString: setting)) { return }
    clx_crash_plainly()
  }

  /// As the runtime reads it: `key=value` separated by commas.
  static func asksForBacktrace(_ setting: String) -> Bool {
    setting.split(separator: ",").contains { pair in
      let parts = pair.split(separator: "=", maxSplits: 1).map { $0.lowercased() }
      return parts.count == 2 && parts[0] == "enable" && ["yes", "y", "on", "true", "t", "1", "tty", "auto"].contains(parts[1])
    }
  }
}
