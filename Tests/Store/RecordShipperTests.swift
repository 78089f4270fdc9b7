import CallFlow
import CallModel
import Foundation
import Glibc
import Logging
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform

@testable import Store

/// A stream that has one record a call, and answers at once, later, or with a failure.
final class TestStream: Sendable {
  enum Mode { case answers, holds, fails }
  struct State {
    var mode = Mode.answers
    var calls: [CallID] = []
    var known: Set<CallID> = []
    var given = 0
    var held: [@Sendable () -> Void] = []
  }
  let state = Mutex(State())

  var calls: [CallID] { state.withLock { $0.calls } }
  var given: Int { state.withLock { $0.given } }
  var mode: Mode {
    get { state.withLock { $0.mode } }
    set { state.withLock { $0.mode = newValue } }
  }

  func append(_ call: CallID, _ line: [UInt8], _ answer: @escaping @Sendable (RecordAnswer) -> Void) {
    let now = state.withLock { state -> RecordAnswer? in
      state.given += 1
      guard state.mode != .fails else { return .failed }
      let isNew = state.known.insert(call).inserted
      if isNew { state.calls.append(call) }
      guard state.mode == .holds else { return isNew ? .added : .superseded }
      state.held.append { answer(isNew ? .added : .superseded) }
      return nil
    }
    if let now { answer(now) }
  }

  func answerHeld() {
    let held = state.withLock { state in
      defer { state.held = [] }
      return state.held
    }
    for answer in held { answer() }
  }
}

/// A records file and processes that ship it, one after the other, on virtual time.
final class ShipperRig {
  let folder: Folder
  let stream = TestStream()
  let counters = RecordShipper.Counters()
  let path: String
  var now = Instant.zero + .seconds(1_000)
  private var shipper: RecordShipper?

  init() throws {
    folder = try Folder()
    path = folder.path + "/calls.jsonl"
    try write([])
  }

  var position: RecordPosition? { (try? folder.read("calls.jsonl.shipped")).flatMap { RecordPosition($0) } }
  var isIdle: Bool { shipper?.isIdle ?? true }
  var nextTurn: Instant? { shipper?.nextStep }

  static func line(_ number: UInt64) -> [UInt8] { try! RecordEncoder().encode(record(number)) + [0x0a] }

  func write(_ bytes: [UInt8]) throws {
    let fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0o640)
    defer { close(fd) }
    #expect(Glibc.write(fd, bytes, bytes.count) == bytes.count)
  }
  func write(_ numbers: ClosedRange<UInt64>) throws { try write(numbers.flatMap(Self.line)) }

  func move(_ name: String) { #expect(rename(path, folder.path + "/" + name) == 0) }

  /// `kill -9` and a new process, with the position file as it is.
  func restart() { shipper = nil }

  /// Turns until nothing happens without waiting.
  func turn() {
    let shipper =
      shipper
      ?? RecordShipper(
        path: path, counters: counters, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, wake: {},
        append: { [stream] in stream.append($0, $1, $2) })
    self.shipper = shipper
    shipper.recordsWritten()
    for _ in 0..<4 { shipper.step(at: now) }
  }
}

private func calls(_ range: ClosedRange<UInt64>) -> [CallID] { range.map { record($0).call } }

@Suite struct RecordShipperTests {
  @Test func `records are given in order, and a restart goes on behind the last one`() throws {
    let rig = try ShipperRig()
    try rig.write(1...5)
    rig.turn()
    #expect(rig.stream.calls == calls(1...5) && rig.counters.streamed.value == 5)
    rig.restart()
    try rig.write(6...6)
    rig.turn()
    #expect(rig.stream.calls == calls(1...6) && rig.stream.given == 6, "nothing is given twice")
    #expect(rig.counters.waitingBytes.value == 0 && rig.isIdle)
  }

  @Test func `killed at any byte of the file, and with any position that was kept: one record each`() throws {
    let rig = try ShipperRig()
    let bytes = (1...4 as ClosedRange<UInt64>).flatMap(ShipperRig.line)
    var kept: [Data] = []
    for (number, byte) in bytes.enumerated() {
      try rig.write([byte])
      rig.turn()
      rig.restart()
      let lines = bytes[...number].count { $0 == 0x0a }
      #expect(rig.stream.calls.count == lines, "only whole lines are given, at once: byte \(number)")
      let position = try Data(contentsOf: URL(fileURLWithPath: rig.path + ".shipped"))
      if kept.last != position { kept.append(position) }
    }
    #expect(rig.stream.calls == calls(1...4) && rig.counters.superseded.value == 0)
    #expect(kept.count == 5, "none, and one behind each line")
    for (number, position) in kept.enumerated() {
      // killed after the answers and before the position was written
      try position.write(to: URL(fileURLWithPath: rig.path + ".shipped"))
      let before = rig.counters.superseded.value
      rig.restart()
      rig.turn()
      #expect(rig.stream.calls == calls(1...4), "the stream has one of each")
      #expect(rig.counters.superseded.value - before == UInt64(4 - number))
    }
    for cut in 0..<RecordPosition.textBytes {
      try kept[4].prefix(cut).write(to: URL(fileURLWithPath: rig.path + ".shipped"))
      rig.restart()
      rig.turn()
      #expect(
        rig.stream.calls == calls(1...4) && rig.position?.offset == Int64(bytes.count), "half a position is refused: \(cut)")
    }
  }

  @Test func `answers that are lost with the process, or come after it gave up, are no second record`() throws {
    let rig = try ShipperRig()
    try rig.write(1...3)
    rig.stream.mode = .holds
    rig.turn()
    #expect(rig.counters.streamed.value == 0 && rig.position == nil)
    rig.restart()
    rig.stream.mode = .answers
    rig.turn()
    #expect(rig.stream.calls == calls(1...3) && rig.counters.superseded.value == 3)
    rig.stream.answerHeld()
    rig.turn()
    #expect(rig.counters.streamed.value == 0 && rig.counters.superseded.value == 3)
  }

  @Test func `what the stream does not take is tried again after 1 s, one at first, then all`() throws {
    let rig = try ShipperRig()
    try rig.write(1...10)
    rig.stream.mode = .fails
    rig.turn()
    #expect(rig.stream.given == 10 && rig.counters.failures.value == 1 && rig.isIdle)
    #expect(rig.nextTurn == rig.now + .seconds(1))
    rig.turn()
    #expect(rig.stream.given == 10, "not before its time")
    rig.now = rig.now + .seconds(1)
    rig.turn()
    #expect(rig.stream.given == 11 && rig.nextTurn == rig.now + .seconds(2))
    for _ in 0..<5 {
      rig.now = rig.now + .seconds(5)
      rig.turn()
    }
    #expect(rig.stream.given == 16 && rig.nextTurn == rig.now + .seconds(5))
    #expect(rig.position == nil && rig.counters.waitingBytes.value > 0)
    rig.stream.mode = .answers
    rig.now = rig.now + .seconds(5)
    rig.turn()
    #expect(rig.stream.calls == calls(1...10) && rig.counters.waitingBytes.value == 0)
  }

  @Test func `no more than 64 are under way, and no more than 1,000 a second`() throws {
    let rig = try ShipperRig()
    try rig.write(1...300)
    rig.stream.mode = .holds
    rig.turn()
    #expect(rig.stream.given == 64)
    #expect(rig.nextTurn == nil, "an answer wakes it")
    rig.stream.mode = .answers
    rig.stream.answerHeld()
    rig.turn()
    let atOnce = rig.stream.given
    #expect(atOnce <= 66)
    #expect(rig.nextTurn.map { $0 >= rig.now && $0 < rig.now + .milliseconds(2) } == true, "\(String(describing: rig.nextTurn))")
    for _ in 0..<100 {
      rig.now = rig.now + .milliseconds(1)
      rig.turn()
    }
    #expect((atOnce + 95...atOnce + 101).contains(rig.stream.given))
    for _ in 0..<200 {
      rig.now = rig.now + .milliseconds(1)
      rig.turn()
    }
    #expect(rig.stream.calls == calls(1...300))
  }

  @Test func `a file that is moved away while it is shipped is finished, then the new one is begun`() throws {
    let rig = try ShipperRig()
    try rig.write(1...2)
    rig.stream.mode = .holds
    rig.turn()
    rig.move("calls.jsonl.1")
    try rig.write(3...4)
    rig.turn()
    #expect(rig.stream.given == 2, "the place is of one file")
    rig.stream.answerHeld()
    rig.stream.mode = .answers
    rig.turn()
    #expect(rig.stream.calls == calls(1...4) && rig.counters.superseded.value == 0)
    rig.restart()
    rig.turn()
    #expect(rig.stream.given == 4)
  }

  @Test func `files that were moved while the stream was away, or nobody ran, all come, the oldest first`() throws {
    for restarts in [false, true] {
      let rig = try ShipperRig()
      try rig.write(1...2)
      rig.turn()
      rig.stream.mode = .fails
      try rig.write(3...4)
      rig.turn()
      for (number, name) in zip([5, 7, 9] as [UInt64], ["calls.jsonl-20261122", "calls.jsonl-20261123", "calls.jsonl.1"]) {
        rig.move(name)
        // the times of files are as coarse as the kernel's ticks
        let moved = rig.folder.path + "/" + name
        var times = [timespec(tv_sec: Int(number), tv_nsec: 0), timespec(tv_sec: Int(number), tv_nsec: 0)]
        #expect(utimensat(AT_FDCWD, moved, &times, 0) == 0)
        try rig.write(number...number + 1)
      }
      try Data("{}\n".utf8).write(to: URL(fileURLWithPath: rig.path + ".2.gz"))
      if restarts { rig.restart() }
      rig.stream.mode = .answers
      for _ in 0..<4 {
        rig.now = rig.now + .seconds(5)
        rig.turn()
      }
      #expect(rig.stream.calls == calls(1...10), "restarts: \(restarts)")
      #expect(rig.counters.unreadable.value == 0 && rig.counters.superseded.value == 0)
    }
  }

  @Test func `a file that is gone costs what it held; the current one is streamed`() throws {
    let rig = try ShipperRig()
    try rig.write(1...2)
    rig.turn()
    unlink(rig.path)
    try rig.write(3...4)
    rig.restart()
    rig.turn()
    #expect(rig.stream.calls == calls(1...4), "also if the file system gives the same number again")
    rig.restart()
    unlink(rig.path)
    rig.turn()
    try rig.write(5...5)
    rig.turn()
    #expect(rig.stream.calls == calls(1...5))
  }

  @Test func `a file that was cut, or written anew in place, is streamed from its beginning`() throws {
    let rig = try ShipperRig()
    try rig.write(1...3)
    rig.turn()
    #expect(truncate(rig.path, 0) == 0)
    rig.turn()
    try rig.write(4...4)
    rig.turn()
    #expect(rig.stream.calls == calls(1...4))
    // it has grown beyond the old position before the next check
    #expect(truncate(rig.path, 0) == 0)
    try rig.write(5...12)
    rig.turn()
    #expect(rig.stream.calls == calls(1...12))
  }

  @Test func `lines that are no record are counted once, and left out`() throws {
    let rig = try ShipperRig()
    let long = [UInt8](repeating: UInt8(ascii: "x"), count: 3 * Limits.streamedRecordBytes)
    let bad: [[UInt8]] = [
      [], Array("no JSON".utf8), Array(#"{"call":7}"#.utf8), Array(#"{"no":"call"}"#.utf8), [0xff, 0x00, 0xfe], long,
      Array(#"{"call":"7f0c2f0e-6a1d-4f0e-8f57-0d7c3f9b1a"}"#.utf8), long,
    ]
    try rig.write(1...1)
    for line in bad { try rig.write(line + [0x0a]) }
    try rig.write(2...2)
    try rig.write(Array(#"{"call":"7f0c2f0e"#.utf8))
    rig.turn()
    #expect(rig.stream.calls == calls(1...2) && rig.counters.unreadable.value == UInt64(bad.count))
    rig.move("calls.jsonl.1")
    try rig.write(3...3)
    rig.turn()
    #expect(rig.stream.calls == calls(1...3) && rig.counters.unreadable.value == UInt64(bad.count) + 1, "the half line, too")
  }

  @Test func `a position that cannot be written costs a restart some records given again, and no more`() throws {
    let rig = try ShipperRig()
    try FileManager.default.createDirectory(atPath: rig.path + ".shipped", withIntermediateDirectories: false)
    try rig.write(1...3)
    rig.turn()
    #expect(rig.stream.calls == calls(1...3))
    rig.restart()
    rig.turn()
    #expect(rig.stream.calls == calls(1...3) && rig.counters.superseded.value == 3)
    rmdir(rig.path + ".shipped")
    try rig.write(4...4)
    rig.turn()
    #expect(
      rig.position?.offset == rig.counters.waitingBytes.value
        + Int64((1...4 as ClosedRange<UInt64>).flatMap(ShipperRig.line).count))
  }

  @Test func `the store's thread gives each record to the stream, the last ones while it stops`() throws {
    let folder = try Folder()
    let (stream, logger) = (TestStream(), Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    let path = folder.path + "/calls.jsonl"
    func store() throws -> CallStore {
      try CallStore(sqlite: folder.path + "/a.db", records: path, readiness: Readiness(), logger: logger)
    }
    let first = try store()
    first.stream(path) { stream.append($0, $1, $2) }
    first.end(record(1))
    while stream.calls.isEmpty { sched_yield() }
    for number in 2...50 as ClosedRange<UInt64> { first.end(record(number)) }
    first.stop()
    #expect(stream.calls == calls(1...50))
    stream.mode = .fails
    let second = try store()
    second.stream(path) { stream.append($0, $1, $2) }
    second.end(record(51))
    second.stop()
    #expect(stream.calls.count == 50 && second.written.value == 1, "a stream that is away holds no stop up")
    stream.mode = .answers
    let third = try store()
    third.stream(path) { stream.append($0, $1, $2) }
    third.stop()
    #expect(stream.calls == calls(1...51) && stream.given == 52)
  }
}
