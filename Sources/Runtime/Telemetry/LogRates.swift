import Logging
import Synchronization
import TrunklineBytes
import TrunklinePlatform

/// Limits how often the log has one kind of line by one cause: a party that can make us write could fill a disk. A kind is a
/// logger's label with the message, which is constant; the line's metadata names the cause. Each has a burst and a rate, and so
/// has a kind over all causes, as sources can be made up. Omitted lines are counted, and the next line of the kind and cause
/// contains their number.
///
/// | line | bound |
/// |---|---|
/// | below `notice` | none: such a line is of a call that has a record, or was requested by its level |
/// | without a field of `causes` and `events` | none: the process, or the operator |
/// | with one of `causes` | of the first such field, and of the kind |
/// | with one of `events` alone, such as a call's id | of the kind |
final class LogRates: Sendable {
  /// Lines that were left out.
  let omitted = Counter()

  struct Kind: Hashable {
    var label: String
    var message: String
    /// Empty: all causes.
    var by: String
  }
  /// Omitted lines that no later line of their kind will report.
  struct Rest: Equatable {
    var kind: Kind
    var count: UInt64
    var fields: Logger.Metadata {
      var out: Logger.Metadata = ["line": "\(kind.message)", "omitted": "\(count)"]
      if !kind.by.isEmpty { out["by"] = "\(kind.by)" }
      return out
    }
  }
  static let summary = "lines like this were left out"
  private struct Entry {
    var bucket: TokenBucket
    var omitted: UInt64 = 0
  }
  private struct State {
    var entries: [Kind: Entry] = [:]
    var swept = Instant.zero
  }
  private let state = Mutex(State())

  /// Fields that name a line's cause, the surest first: a party that has shown a token before an address, an address before a
  /// statement of the message.
  static let causes = ["user", "address", "from", "flow", "number", "trunk", "origin", "url", "device", "directory"]
  /// Fields that name a line's subject, where each line has another one.
  static let events = ["call", "session", "about", "file"]

  /// Nil: the line is left out. Else how many of its kind and cause were left out since the last one.
  func admit(_ label: String, message: String, level: Logger.Level, fields: Logger.Metadata, at now: Instant) -> UInt64? {
    guard level >= .notice, level < .critical else { return 0 }
    let cause = Self.causes.first { fields[$0] != nil }
    guard cause != nil || Self.events.contains(where: { fields[$0] != nil }) else { return 0 }
    let by = cause.flatMap { fields[$0] }.map { Self.source("\($0)") } ?? ""
    let message = String(message.prefix(Limits.logKindBytes))
    let all = Kind(label: label, message: message, by: "")
    let own = by.isEmpty ? all : Kind(label: label, message: message, by: by)
    let admitted = state.withLock { state in
      // too many causes: these share the kind's own bucket
      let kind = state.entries[own] != nil || state.entries.count < Limits.logKinds ? own : all
      guard consume(kind, from: &state, now), kind == all || consume(all, from: &state, now) else {
        state.entries[kind]?.omitted += 1
        return nil as UInt64?
      }
      let omitted = state.entries[kind]?.omitted ?? 0
      state.entries[kind]?.omitted = 0
      return omitted
    }
    if admitted == nil { omitted.increment() }
    return admitted
  }

  private func consume(_ kind: Kind, from state: inout State, _ now: Instant) -> Bool {
    let (rate, burst) =
      kind.by.isEmpty ? (Limits.logLinesPerKind, Limits.logBurstPerKind) : (Limits.logLinesPerCause, Limits.logBurstPerCause)
    return state.entries[kind, default: Entry(bucket: TokenBucket(perSecond: rate, burst: burst, at: now))].bucket.consume(
      at: now)
  }

  /// Forgets kinds that are quiet again, at most every `Limits.logSweep`; `isLast`: all. Returns their omitted lines, to be
  /// reported.
  func sweep(at now: Instant, isLast: Bool = false) -> [Rest] {
    state.withLock { state in
      guard isLast || now - state.swept >= Limits.logSweep else { return [] }
      state.swept = now
      var rest: [Rest] = []
      for (kind, entry) in state.entries where isLast || entry.bucket.isFull(at: now) {
        if entry.omitted > 0 { rest.append(Rest(kind: kind, count: entry.omitted)) }
        state.entries[kind] = nil
      }
      return rest
    }
  }

  /// The cause of an address, without its port: an owner of an address has all of its ports, and a /64 of IPv6.
  private static func source(_ text: String) -> String {
    let text = String(text.prefix(Limits.logKindBytes))
    // a flow is `udp 192.0.2.1:5060 …`: its last address is the peer's
    let word = text.split(separator: " ").last.map(String.init) ?? text
    return (SocketAddress(word)?.ip ?? IPAddress(word)).map { "\($0.subscriber)" } ?? text
  }
}
