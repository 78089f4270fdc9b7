import TrunklineBytes

/// One trace: its subject, the messages that wait for its reader, and its file so far.
struct Trace {
  enum End: String {
    case time = "its time is over"
    case size = "the file reached its size"
    case stopped = "it was stopped"
    case unread = "its reader does not read"
  }

  let subject: TraceSubject
  private let until: Instant
  private(set) var appendedUntil: Instant
  private var end: End?
  private var waiting: [(message: TracedMessage, callID: String?)] = []
  private var waitingBytes = 0
  private var bytesLeft: Int
  private var received: UInt64 = 0
  private var dropped: UInt64 = 0
  private var calls: [String: Identifier] = [:]
  private var order: [String] = []
  private var writer: CaptureWriter?

  init(subject: TraceSubject, until: Instant, bytes: Int, at now: Instant, writer: CaptureWriter) {
    (self.subject, self.until, bytesLeft, self.writer) = (subject, until, bytes, writer)
    appendedUntil = now + Limits.readerSilence
  }

  /// Messages are still recorded.
  var isOpen: Bool { end == nil }

  mutating func end(_ why: End) { if end == nil { end = why } }

  mutating func append(_ message: TracedMessage, _ callID: String?, at now: Instant) {
    if now >= until { end(.time) }
    if now >= appendedUntil {
      end(.unread)
      waiting = []
      waitingBytes = 0
    }
    guard end == nil, subject.accepts(message, callID) else { return }
    received += 1
    let count = message.bytes.count
    guard waiting.count < Limits.waitingMessages, waitingBytes + count <= Limits.waitingBytes else {
      dropped += 1
      return
    }
    waiting.append((message, callID))
    waitingBytes += count
  }

  mutating func learn(_ call: Identifier, _ callID: String) {
    if calls.updateValue(call, forKey: callID) == nil { order.append(callID) }
    if order.count > Limits.calls { calls[order.removeFirst()] = nil }
  }

  // MARK: the reader

  /// A piece of work for the reader's thread.
  struct Work {
    var writer: CaptureWriter
    fileprivate var messages: [(message: TracedMessage, callID: String?)]
    fileprivate var calls: [String: Identifier]
    fileprivate var subject: TraceSubject
    fileprivate var received: UInt64
    fileprivate var dropped: UInt64
    fileprivate var bytesLeft: Int
    /// Set when nothing follows `messages`.
    fileprivate var end: End?
    private(set) var isFinished = false

    mutating func write(at wall: Int64) {
      for (message, callID) in messages {
        guard end != .size else {
          dropped += 1
          continue
        }
        var message = message
        SecretMask.apply(to: &message.bytes)
        let before = writer.output.count
        let text = [
          "trunk \(message.trunk)", callID.map { "Call-ID \($0)" }, callID.flatMap { calls[$0] }.map { "call \($0)" },
          message.decrypted,
        ]
        writer.message(message, comment: text.compactMap(\.self).joined(separator: ", "))
        bytesLeft -= writer.output.count - before
        if bytesLeft <= 0 { end = .size }
      }
      guard let end else { return }
      let loss = dropped == 0 ? "none dropped" : "\(dropped) dropped"
      writer.finish(
        at: wall, received: received, dropped: dropped,
        comment: "trace of \(subject.text): \(received) messages, \(loss); \(end.rawValue)")
      isFinished = true
    }
  }

  /// Nil while another thread works on the trace: a trace has one reader at a time.
  mutating func popWork(at now: Instant) -> Work? {
    if now >= until { end(.time) }
    guard let writer else { return nil }
    appendedUntil = now + Limits.readerSilence
    // moved, not copied: the control thread may wait for this
    let messages = waiting
    waiting = []
    waitingBytes = 0
    self.writer = nil
    return Work(
      writer: writer, messages: messages, calls: calls, subject: subject, received: received, dropped: dropped,
      bytesLeft: bytesLeft,
      end: end)
  }

  mutating func giveBack(_ work: Work) {
    bytesLeft = work.bytesLeft
    var writer = work.writer
    _ = writer.drain()
    self.writer = writer
  }
}

extension TracedMessage {
  fileprivate var decrypted: String? { flow.transport == .tls ? "decrypted" : nil }
}
