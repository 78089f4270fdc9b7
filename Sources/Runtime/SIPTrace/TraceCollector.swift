import Synchronization
public import TrunklineBytes
import TrunklinePlatform
public import TrunklineSIPDialogs

/// Which messages a trace records.
public enum TraceSubject: Hashable, Sendable {
  case trunk(String)
  /// Messages with one of these Call-IDs.
  case call(id: String, callIDs: Set<String>)
}

/// SIP traces of the running gateway. The control thread reports every message; a reader fetches each trace as pcapng, piece by
/// piece.
///
///     let id = try collector.start(.trunk("carrier"), for: .seconds(600), bytes: 64 << 20)
///     collector.saw(message.bytes, message.flow, isOurs: true, trunk: "carrier")     // the control thread
///     while let piece = collector.read(id) { file += piece }                         // any other thread; nil: the end was read
///
/// `saw` keeps a reference to the message and returns: the reader's thread masks and writes. A trace drops and counts messages
/// when its reader is too slow; it ends when it is not read for 15 s.
public final class TraceCollector: Sendable {
  public enum Refusal: Error, Sendable { case tooMany }

  private let traces = Mutex<[UInt64: Trace]>([:])
  private let isOn = Atomic<Bool>(false)
  private let number = Atomic<UInt64>(0)
  private let application: String
  private let clock: @Sendable () -> (now: Instant, wall: Int64)

  public convenience init(application: String) {
    self.init(application: application) { (MonotonicClock.now(), WallClock.nowMicroseconds()) }
  }

  init(application: String, clock: @escaping @Sendable () -> (now: Instant, wall: Int64)) {
    (self.application, self.clock) = (application, clock)
  }

  // MARK: readers

  public func start(_ subject: TraceSubject, for time: Duration, bytes: Int) throws(Refusal) -> UInt64 {
    let now = clock().now
    let id = number.add(1, ordering: .relaxed).newValue
    let drained = traces.withLock { traces in
      for (id, trace) in traces where now >= trace.appendedUntil { traces[id] = nil }
      guard traces.count < Limits.traces else { return false }
      traces[id] = Trace(
        subject: subject, until: now + min(time, Limits.longest), bytes: min(bytes, Limits.largestBytes), at: now,
        writer: CaptureWriter(application: application, name: subject.text))
      isOn.store(true, ordering: .relaxed)
      return true
    }
    guard drained else { throw .tooMany }
    return id
  }

  /// The next piece of the file, which may be empty; nil once its end has been read, or if there is no such trace.
  public func read(_ id: UInt64) -> [UInt8]? {
    let (now, wall) = clock()
    // The writer is out of the table while it works, so that `saw` never waits for it; new messages are kept in the trace
    // meanwhile.
    guard var work = traces.withLock({ $0[id]?.popWork(at: now) }) else { return nil }
    work.write(at: wall)
    traces.withLock { traces in
      traces[id]?.giveBack(work)
      if work.isFinished { traces[id] = nil }
      isOn.store(traces.values.contains { $0.isOpen }, ordering: .relaxed)
    }
    return work.writer.drain()
  }

  /// Ends the recording of messages; the recorded ones can still be read. False: no such trace.
  @discardableResult public func stop(_ id: UInt64) -> Bool {
    traces.withLock { traces in
      traces[id]?.end(.stopped)
      return traces[id] != nil
    }
  }

  // MARK: the control thread

  /// A message that was received or sent.
  public func saw(_ bytes: [UInt8], _ flow: Flow, isOurs: Bool, trunk: String) {
    guard isOn.load(ordering: .relaxed) else { return }
    let (now, wall) = clock()
    let message = TracedMessage(bytes: bytes, flow: flow, isOurs: isOurs, trunk: trunk, at: wall)
    let callID = message.callID
    traces.withLock { traces in
      for id in traces.keys { traces[id]?.append(message, callID, at: now) }
      isOn.store(traces.values.contains { $0.isOpen }, ordering: .relaxed)
    }
  }

  /// Notes a call and its Call-ID, for the comments in the file.
  public func began(_ call: Identifier, callID: String?) {
    guard let callID, isOn.load(ordering: .relaxed) else { return }
    traces.withLock { traces in
      for id in traces.keys { traces[id]?.learn(call, callID) }
    }
  }
}

extension TraceSubject {
  var text: String {
    switch self {
    case .trunk(let name): "trunk \(name)"
    case .call(let id, _): "call \(id)"
    }
  }

  func accepts(_ message: TracedMessage, _ callID: String?) -> Bool {
    switch self {
    case .trunk(let name): message.trunk == name
    case .call(_, let callIDs): callID.map(callIDs.contains) ?? false
    }
  }
}
