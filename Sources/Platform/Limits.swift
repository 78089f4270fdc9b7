// The named limits of this module: every bound on a queue, table or message.
enum Limits {
  /// Addresses of a name that are tried.
  static let hostAddresses = 8
  /// Threads that wait for the system's resolver, for each requester, and pending queries; a further query fails.
  static let lookupThreads = 4
  static let lookups = 1_024
  /// Descriptors requested from the system, if it allows as many.
  static let descriptors = 1_048_576
  /// The kernel keeps 15 bytes of a thread's name.
  static let threadNameBytes = 15
  /// Priority of threads that must run as soon as they wake; the lowest realtime one, below the kernel's own.
  static let realtimePriority: Int32 = 1
  /// Events read from epoll in one step of a loop.
  static let eventsPerStep = 128
  /// Interval of firings of a timer whose deadline makes no progress.
  static let stuckTimerPause = Duration.milliseconds(10)
  /// Closures queued for a loop; a post beyond that is refused and counted.
  static let postedClosures = 8_192
  /// Bytes that wait for the end of a TLS handshake.
  static let tlsEarlyBytes = 524_288
  /// Alternative names of a certificate.
  static let certificateNames = 1_000
  /// Elements dequeued from a loop's own mailbox in one step, so that sockets and timers are not starved.
  static let postedPerStep = 512
  /// Pending connections of a listening TCP socket.
  static let listenBacklog = 4_096
  /// Label sets of one metric table; further ones are counted under `other`.
  static let labelSets = 512
  /// Upper bounds of one histogram.
  static let histogramBuckets = 64
  /// Addresses reported by one check of the machine's interfaces.
  static let localAddresses = 64
  /// Interval of checks while the network changes; without changes, if the kernel notifies us of them, and if it does not.
  static let networkPause = Duration.seconds(1)
  static let networkLook = Duration.seconds(60)
  static let networkLookUnnotified = Duration.seconds(2)
  /// Messages of the kernel that are dropped before one check; the rest waits for the next one.
  static let networkMessages = 1_024
  /// Log lines on changing addresses: this many at once, then one per interval.
  static let networkLines = 4
  static let networkLineInterval = Duration.seconds(10)
  /// Components on the readiness board.
  static let readinessComponents = 64
  /// Threads of a process that are watched.
  static let heartbeats = 256
  /// A thread that is this long in one step hangs (`/healthz`); a vital one ends the process after `deadAfter`.
  static let unwellAfter = Duration.seconds(2)
  static let deadAfter = Duration.seconds(5)
  /// A thread in a longer step is named as a possible cause if the process ends late.
  static let longStep = Duration.milliseconds(500)
  /// How long a signal to end waits at most to be handled while the process starts.
  static let signalTimeout = Duration.seconds(2)
  /// Bytes of a dying process's line: below PIPE_BUF, so that a pipe accepts it whole.
  static let emergencyLogBytes = 512
}
