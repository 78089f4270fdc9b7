import BenchKit
import Glibc

/// Traces from files.
extension Trace {
  /// Reads `send_ms,arrival_ms` lines, `send_ms,lost` for a loss. Headings before the first row, blank lines, lines that begin with
  /// `#`, carriage returns and further columns are let through. Packets are numbered in the order of their send times.
  ///
  /// - Parameter frameMilliseconds: audio in each packet; nil: as far apart as most are sent.
  static func read(_ path: String, frameMilliseconds: Int? = nil) throws -> Trace {
    let rows = try TraceRow.read(path)
    let name = path.split(separator: "/").last.map(String.init) ?? path
    let frame = try frameMilliseconds ?? TraceRow.frame(rows, path)
    if frameMilliseconds == nil { try TraceRow.refuseChanges(rows, frame, path) }
    try TraceRow.refuseRepeats(rows, path)
    let trace = Trace(name: name, packets: rows.map { ($0.sent, $0.arrived) }, frameMilliseconds: frame)
    let span = Double(trace.timestamps.last ?? 0) / 8
    guard span < Double(rows.count * frame) * 20 + 600_000 else {
      throw BenchError(
        text: "\(path): \(rows.count) packets of \(frame) ms in \(fixed(span / 1000, 0)) s: send times are in milliseconds")
    }
    return trace
  }
}

private struct TraceRow {
  var line: Int
  var sent: Double
  var arrived: Double?

  /// In the order of their send times.
  static func read(_ path: String) throws -> [TraceRow] {
    guard let file = fopen(path, "r") else { throw BenchError(text: "\(path): \(String(cString: strerror(errno)))") }
    defer { fclose(file) }
    var rows: [TraceRow] = []
    var (line, capacity): (UnsafeMutablePointer<CChar>?, Int) = (nil, 0)
    defer { free(line) }
    var number = 0
    while true {
      errno = 0
      let length = getline(&line, &capacity, file)
      guard length > 0, let start = line else { break }
      number += 1
      let octets = UnsafeRawBufferPointer(start: start, count: length)
      guard let (text, packet) = row(String(decoding: octets, as: UTF8.self), isFirst: rows.isEmpty) else { continue }
      guard let packet else { throw BenchError(text: "\(path):\(number): not `send_ms,arrival_ms`: \(text)") }
      rows.append(TraceRow(line: number, sent: packet.sent, arrived: packet.arrived))
    }
    guard ferror(file) == 0 else { throw BenchError(text: "\(path): \(String(cString: strerror(errno)))") }
    guard !rows.isEmpty else { throw BenchError(text: "\(path): no rows `send_ms,arrival_ms`") }
    return rows.sorted { ($0.sent, $0.line) < ($1.sent, $1.line) }
  }

  private typealias Row = (text: String, packet: (sent: Double, arrived: Double?)?)

  /// nil for a line without a packet.
  private static func row(_ line: String, isFirst: Bool) -> Row? {
    let text = line.filter { !$0.isWhitespace && $0 != "\"" && $0 != "\u{feff}" && $0 != "\0" }
    guard !text.isEmpty, !text.hasPrefix("#") else { return nil }
    let fields = text.split(separator: text.contains(",") ? "," : ";", omittingEmptySubsequences: false)
    guard fields.count >= 2, let sent = milliseconds(fields[0]) else { return isFirst ? nil : (text, nil) }
    if let arrived = milliseconds(fields[1]) { return (text, (sent, arrived)) }
    let losses = ["lost", "loss", "", "nan", "inf", "-", "na", "none", "null"]
    return losses.contains(fields[1].lowercased()) ? (text, (sent, nil)) : (text, nil)
  }

  private static func milliseconds(_ field: Substring) -> Double? {
    guard let value = Double(field), value.isFinite, abs(value) < 1e12 else { return nil }
    return value
  }

  /// The length of a packet that two are as far apart as; nil for other distances.
  private static func frame(between one: TraceRow, and other: TraceRow) -> Int? {
    let distance = other.sent - one.sent
    return Trace.frames.first { abs(distance - Double($0)) <= Double($0) * 0.2 }
  }

  /// What most are apart; senders that send two at a time are as far apart as two frames on average.
  static func frame(_ rows: [TraceRow], _ path: String) throws -> Int {
    guard rows.count > 1 else { return 20 }
    var counts: [Int: Int] = [:]
    for (one, other) in zip(rows, rows.dropFirst()) {
      if let frame = frame(between: one, and: other) { counts[frame, default: 0] += 1 }
    }
    let isTogether = rows.indices.dropFirst().count { rows[$0].sent - rows[$0 - 1].sent < 2 } * 3 > rows.count
    guard !isTogether, let most = counts.max(by: { ($0.value, $1.key) < ($1.value, $0.key) }), most.value * 2 >= rows.count - 1
    else {
      throw BenchError(text: "\(path): packets are not sent 10, 20, 30, 40 or 60 ms apart: say with --frame how much each has")
    }
    return most.key
  }

  private static let steady = 10

  /// A stream whose packets become longer or shorter: each length is a trace of its own.
  static func refuseChanges(_ rows: [TraceRow], _ frame: Int, _ path: String) throws {
    var (run, length) = (0, frame)
    for (one, other) in zip(rows, rows.dropFirst()) {
      let found = self.frame(between: one, and: other)
      run = found == length ? run + 1 : 1
      length = found ?? frame
      guard length != frame, run == steady else { continue }
      throw BenchError(
        text:
          "\(path):\(other.line): packets of \(frame) ms, and of \(length) ms here: cut it in two, or say with --frame what each has"
      )
    }
  }

  /// Two, three packets are sent at once, not five.
  static func refuseRepeats(_ rows: [TraceRow], _ path: String) throws {
    var run = 1
    for (one, other) in zip(rows, rows.dropFirst()) {
      run = one.sent == other.sent ? run + 1 : 1
      if run > 4 { throw BenchError(text: "\(path):\(other.line): the fifth packet sent at \(fixed(other.sent, 3)) ms") }
    }
  }
}
