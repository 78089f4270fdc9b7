import Dispatch
import Synchronization
import TrunklineBytes

/// Passes entries to the app's sink, in order, on its own queue: a sink that is slow, or blocks, delays only itself. Waiting
/// entries are limited; those of the launch wait until the app has set a sink.
final class PhoneLogger: Sendable {
  typealias Sink = @Sendable (Phone.LogEntry) -> Void
  private struct State {
    var sink: Sink?
    var minimum = Phone.LogEntry.Level.info
    /// True until the app has set a sink or none.
    var isEarly = true
    var waiting: [Phone.LogEntry] = []
    var dropped = 0
    var isDraining = false
  }
  /// Limit of waiting entries.
  static let limit = 512

  private let queue = DispatchQueue(label: "org.trunkline.log", qos: .utility)
  private let start = MonotonicTime.now()
  private let state = Mutex(State())

  init(_ sink: Sink?) { set(sink, minimum: .info, isEarly: sink == nil) }

  /// Nil: no further entries are made.
  func set(_ sink: Sink?, minimum: Phone.LogEntry.Level) { set(sink, minimum: minimum, isEarly: false) }

  private func set(_ sink: Sink?, minimum: Phone.LogEntry.Level, isEarly: Bool) {
    state.withLock { state in
      state.sink = sink
      state.minimum = minimum
      state.isEarly = isEarly
      if sink == nil { (state.waiting, state.dropped) = ([], 0) }
    }
    drainLater()
  }

  /// True if an entry of this level would be used.
  func accepts(_ level: Phone.LogEntry.Level) -> Bool {
    state.withLock { ($0.sink != nil || $0.isEarly) && level >= $0.minimum }
  }

  /// Any thread but the audio unit's.
  func note(
    _ level: Phone.LogEntry.Level, _ code: Phone.LogEntry.Code, call: Identifier? = nil, _ fields: [Phone.LogEntry.Field] = []
  ) {
    let entry = Phone.LogEntry(time: MonotonicTime.now() - start, level: level, code: code, call: call?.uuid, fields: fields)
    state.withLock { state in
      guard state.sink != nil || state.isEarly, level >= state.minimum else { return }
      if state.waiting.count >= Self.limit {
        state.waiting.removeFirst()
        state.dropped += 1
      }
      state.waiting.append(entry)
    }
    drainLater()
  }

  /// Waits until the sink has every entry that was noted before; a sink must not call it.
  func flush() { queue.sync {} }

  private func drainLater() {
    let isDue = state.withLock { state in
      guard state.sink != nil, !state.isDraining, !state.waiting.isEmpty else { return false }
      state.isDraining = true
      return true
    }
    if isDue { queue.async { [self] in drain() } }
  }

  private func drain() {
    while true {
      let (sink, entries, dropped) = state.withLock { state in
        defer { (state.waiting, state.dropped) = ([], 0) }
        if state.waiting.isEmpty || state.sink == nil { state.isDraining = false }
        return (state.sink, state.waiting, state.dropped)
      }
      guard let sink, !entries.isEmpty else { return }
      if dropped > 0 {
        sink(.init(time: entries[0].time, level: .warning, code: .logDropped, call: nil, fields: [.init("count", "\(dropped)")]))
      }
      for entry in entries { sink(entry) }
    }
  }
}
