// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Addresses of a name that are tried.
  static let hostAddresses = 8
  /// Threads that wait for the system's resolver, for each who asks, and questions that wait for its answers; one more has no answer.
  static let lookupThreads = 4
  static let lookups = 1_024
  /// Descriptors that are asked of the system, where it allows as many.
  static let descriptors = 1_048_576
  /// The kernel keeps 15 bytes of a thread's name.
  static let threadNameBytes = 15
  /// Of threads that must run as soon as they wake; the lowest there is, below the kernel's own.
  static let realtimePriority: Int32 = 1
  /// Events taken from epoll in one turn of a loop.
  static let eventsPerStep = 128
  /// Between two firings of a timer whose deadline makes no progress.
  static let stuckTimerPause = Duration.milliseconds(10)
  /// Closures waiting for a loop; a post beyond that is refused and counted.
  static let postedClosures = 8_192
  /// Bytes that wait for the end of a TLS handshake.
  static let tlsEarlyBytes = 524_288
  /// Alternative names of a certificate.
  static let certificateNames = 1_000
  /// Elements taken from a loop's own mailbox in one turn, so that sockets and timers are not starved.
  static let postedPerStep = 512
  /// Pending connections of a listening TCP socket.
  static let listenBacklog = 4_096
  /// Label sets of one metric table; what comes beyond that is counted under `other`.
  static let labelSets = 512
  /// Upper bounds of one histogram.
  static let histogramBuckets = 64
  /// Addresses reported by one look at the machine's interfaces.
  static let localAddresses = 64
  /// Between two looks at the network while it changes; and while nothing is heard of changes, with the kernel's messages and without.
  static let networkPause = Duration.seconds(1)
  static let networkLook = Duration.seconds(60)
  static let networkLookUnnotified = Duration.seconds(2)
  /// Messages of the kernel that are dropped before one look; what is left waits for the next one.
  static let networkMessages = 1_024
  /// Lines of the log on addresses that come and go, at once and from then on: one each.
  static let networkLines = 4
  static let networkLineInterval = Duration.seconds(10)
  /// Components on the readiness board.
  static let readinessComponents = 64
  /// Threads of a process that are watched.
  static let heartbeats = 256
  /// In one turn for longer than this a thread hangs (`/healthz`); a vital one ends the process after `deadAfter`.
  static let unwellAfter = Duration.seconds(2)
  static let deadAfter = Duration.seconds(5)
  /// Named as what may have kept a process that is late to end.
  static let longStep = Duration.milliseconds(500)
  /// A signal to end waits no longer to be taken, while the process starts.
  static let signalTimeout = Duration.seconds(2)
  /// What a dying process says, in bytes: below PIPE_BUF, so that a pipe takes it whole.
  static let emergencyLogBytes = 512
}
