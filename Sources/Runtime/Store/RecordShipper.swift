import CallModel
import Foundation
import Logging
import Synchronization
import TrunklineBytes
import TrunklinePlatform

/// The stream's answer to a record.
public enum RecordAnswer: Sendable {
  case added
  /// The stream has this call's record already: ours after a lost answer, or that of a node that considered us dead.
  case superseded
  /// It failed this time and is tried again.
  case failed
}

/// Sends the lines of the records file to a stream, in order, and keeps its position in a file beside it. It runs on the store's
/// thread and never waits: a step reads and posts some lines, and an idle step costs two system calls. A thread of its own would
/// read a file that another thread may be cutting.
///
/// | state | event | next |
/// |---|---|---|
/// | shipping | records written, answers | up to `Limits.streamedUnanswered` are under way, `Limits.streamedPerSecond` at most |
/// | shipping | the oldest under way is added or superseded | the position moves after it, and is written |
/// | shipping | the oldest under way failed | waiting; all under way are sent again |
/// | waiting | 1 s, then 2 s, … 5 s | trying: one record |
/// | trying | added or superseded / failed | shipping / waiting |
///
/// The stream refuses a call's second record, so an outdated or missing position costs time only.
final class RecordShipper {
  typealias Append = @Sendable (CallID, [UInt8], @escaping @Sendable (RecordAnswer) -> Void) -> Void

  /// Any thread reads.
  struct Counters: Sendable {
    let streamed = Counter()
    let superseded = Counter()
    let unreadable = Counter()
    let failures = Counter()
    let waitingBytes = Gauge()
  }
  private struct Flying {
    var end: Int64
    var isRecord = true
    var answer: RecordAnswer?
  }
  /// Answers from other threads, by number.
  private final class Answers: Sendable {
    let list = Mutex<[(number: UInt64, answer: RecordAnswer)]>([])
    let wake: @Sendable () -> Void
    init(_ wake: @escaping @Sendable () -> Void) { self.wake = wake }

    func add(_ number: UInt64, _ answer: RecordAnswer) {
      let isFirst = list.withLock { list in
        list.append((number, answer))
        return list.count == 1
      }
      if isFirst { wake() }
    }
  }

  private let tail: RecordTail
  private let file: RecordPositionFile
  private let append: Append
  private let counters: Counters
  private let logger: Logger
  private let answers: Answers
  private let decoder = JSONDecoder()
  /// The offset after the last line that is in the stream, or is not a record.
  private var done: Int64 = 0
  private var flying: [Flying] = []
  /// The number of the first of `flying`.
  private var first: UInt64 = 0
  private var isTrying = false
  private var pauses = 0
  private var waitsUntil: Instant?
  /// When the next record would be sent if records were spread evenly.
  private var pace = Instant.zero
  private var isPaced = false
  private var hasMore = true
  private var isUnwritten = false
  private var problem: String?

  /// - Parameters:
  ///   - path: the records file.
  ///   - append: accepts a line; answers once, on any thread.
  ///   - wake: any thread; requests a `step`.
  init(
    path: String, counters: Counters, logger: Logger, wake: @escaping @Sendable () -> Void, append: @escaping Append
  ) {
    (self.append, self.counters, self.logger) = (append, counters, logger)
    (tail, file, answers) = (RecordTail(path: path), RecordPositionFile(path: path + ".shipped"), Answers(wake))
    let position = file.read()
    let isFound = tail.open(at: position)
    done = isFound ? position?.offset ?? 0 : 0
    if !isFound {
      logger.warning(
        "the records file that was being streamed was removed: its last records may be missing in the stream; let log rotation keep one file unpacked (delaycompress)",
        metadata: ["file": "\(path)"])
    }
  }

  /// The store has written records.
  func recordsWritten() { hasMore = true }

  /// All written records are in the stream, or cannot be sent now.
  var isIdle: Bool { waitsUntil != nil || (flying.isEmpty && !hasMore) }

  /// When the next step is due without a wake; nil: none.
  var nextStep: Instant? {
    if let waitsUntil { return waitsUntil }
    guard hasMore, flying.count < room else { return nil }
    return isPaced ? pace - Limits.streamBurst : .zero
  }

  private var room: Int { isTrying ? 1 : Limits.streamedUnanswered }

  func step(at now: Instant) {
    drainAnswers(at: now)
    if let until = waitsUntil, until <= now {
      waitsUntil = nil
      hasMore = true
    }
    if waitsUntil == nil { fill(at: now) }
    if isUnwritten { write() }
    counters.waitingBytes.set(tail.bytes(after: done))
  }

  // MARK: answers

  private func drainAnswers(at now: Instant) {
    let arrived = answers.list.withLock { list in
      defer { list.removeAll(keepingCapacity: true) }
      return list
    }
    for (number, answer) in arrived where number >= first && number - first < UInt64(flying.count) {
      flying[Int(number - first)].answer = answer
    }
    while let next = flying.first, let answer = next.answer {
      guard answer != .failed else { return giveUp(at: now) }
      if next.isRecord {
        (answer == .added ? counters.streamed : counters.superseded).increment()
        isTrying = false
        pauses = 0
      } else {
        counters.unreadable.increment()
      }
      flying.removeFirst()
      first += 1
      moved(to: next.end)
    }
    // The position is in one file: whether that file has ended is checked when all of its records are answered.
    if flying.isEmpty, !arrived.isEmpty { hasMore = true }
  }

  /// Records under way may or may not be in the stream: sent again, they are superseded or added.
  private func giveUp(at now: Instant) {
    counters.failures.increment()
    restart(at: done)
    waitsUntil = now + Limits.retry * min(1 << pauses, Limits.streamRetries)
    isTrying = true
    pauses = min(pauses + 1, 3)
  }

  private func restart(at offset: Int64) {
    first += UInt64(flying.count)
    flying.removeAll(keepingCapacity: true)
    done = offset
    tail.seek(offset)
    hasMore = true
  }

  private func moved(to offset: Int64) {
    done = offset
    isUnwritten = true
  }

  private func write() {
    do throws(StoreError) {
      try file.write(tail.position(done))
      isUnwritten = false
      problem = nil
    } catch {
      // Written with the next record; a restart before that sends some records again, which the stream supersedes.
      if problem == nil { logger.warning("records are streamed, but their position is not saved", metadata: ["why": "\(error)"]) }
      problem = error.description
    }
  }

  // MARK: lines

  private func fill(at now: Instant) {
    isPaced = false
    var lines = 0
    while hasMore, flying.count < room, lines < Limits.streamedPerStep {
      if pace - now > Limits.streamBurst {
        isPaced = true
        return
      }
      switch tail.next() {
      case .line(let line, let end):
        lines += 1
        give(line, end, at: now)
      case .end(let hasRest): hasMore = atEnd(hasRest)
      case .replaced:
        logger.warning("the records file was cut or replaced in place: the gateway streams it from its beginning")
        restart(at: 0)
        _ = tail.open(at: nil)
        isUnwritten = true
      }
    }
  }

  private func give(_ line: [UInt8]?, _ end: Int64, at now: Instant) {
    guard let line, let call = call(of: line) else {
      guard flying.isEmpty else { return flying.append(Flying(end: end, isRecord: false, answer: .superseded)) }
      counters.unreadable.increment()
      return moved(to: end)
    }
    pace = max(pace, now) + .seconds(1) / Limits.streamedPerSecond
    let number = first + UInt64(flying.count)
    flying.append(Flying(end: end))
    append(call, line) { [answers] in answers.add(number, $0) }
  }

  /// Whether another file follows.
  private func atEnd(_ hasRest: Bool) -> Bool {
    guard flying.isEmpty, tail.advance() else { return false }
    if hasRest { counters.unreadable.increment() }
    moved(to: 0)
    return true
  }

  private struct Line: Decodable { var call: CallID }
  private func call(of line: [UInt8]) -> CallID? { try? decoder.decode(Line.self, from: Data(line)).call }
}
