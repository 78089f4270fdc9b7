import TrunklineBytes
import TrunklineSIPDialogs

/// Whether new calls must be refused, and why. No clock, no I/O.
///
/// | reason | from | until |
/// |---|---|---|
/// | delay | the control loop's timers were late by 200 ms in the mean of a second | 50 ms |
/// | memory | 90 % of the limit in use | 85 % |
/// | delay | datagrams have come faster than they are read for 40 ms | the kernel's buffer is empty |
/// | cpu, ports, calls | at once: no media thread, no port pair, no call slot is free | at once |
///
/// The first two are checked ten times a second, the others with every SIP message.
struct OverloadDetector {
  private var delays = [Int64](repeating: 0, count: Limits.delaySamples)
  private var next = 0
  private var sum: Int64 = 0
  private var isLate = false
  private var isShort = false

  /// A lasting reason: it refuses calls of both directions.
  var lasting: RefusalReason? { isLate ? .delay : isShort ? .memory : nil }

  mutating func add(delay: Duration, memory: (used: Int64, limit: Int64)) {
    // One sample alone is not the mean of a second: after a stop of the whole process it is as long as the stop.
    let delay = min(max(.zero, delay), Limits.longestDelay).nanoseconds
    sum += delay - delays[next]
    delays[next] = delay
    next = (next + 1) % delays.count
    let mean = Duration.nanoseconds(sum / Int64(delays.count))
    isLate = mean >= (isLate ? Limits.delayLow : Limits.delayHigh)
    let percent = isShort ? Limits.memoryLowPercent : Limits.memoryHighPercent
    isShort = memory.limit > 0 && memory.used >= memory.limit / 100 * percent
  }

  func verdict(_ media: MediaShortage?, isFull: Bool, backlog: Duration = .zero) -> RefusalReason? {
    if let lasting { return lasting }
    if backlog >= Limits.backlog { return .delay }
    if isFull { return .calls }
    switch media {
    case .cpu: return .cpu
    case .ports: return .ports
    case nil: return nil
    }
  }
}
