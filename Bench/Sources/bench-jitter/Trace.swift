import BenchKit
import Bytes
import Glibc

/// A recorded or made network: for each 20 ms packet when it was sent and when it came, in milliseconds; nil when it was lost.
struct Trace {
  var name: String
  var packets: [(sent: Double, arrived: Double?)]

  /// Reads `send_ms,arrival_ms` lines, `send_ms,lost` for a loss. Headings before the first row, blank lines, lines that begin with
  /// `#`, carriage returns and further columns are let through. Packets are numbered in the order of their send times.
  static func read(_ path: String) throws -> Trace {
    guard let file = fopen(path, "r") else { throw BenchError(text: "\(path): \(String(cString: strerror(errno)))") }
    defer { fclose(file) }
    var trace = Trace(name: path.split(separator: "/").last.map(String.init) ?? path, packets: [])
    var (line, capacity): (UnsafeMutablePointer<CChar>?, Int) = (nil, 0)
    defer { free(line) }
    var number = 0
    while true {
      errno = 0
      let length = getline(&line, &capacity, file)
      guard length > 0, let start = line else { break }
      number += 1
      let octets = UnsafeRawBufferPointer(start: start, count: length)
      guard let row = try row(String(decoding: octets, as: UTF8.self), isFirst: trace.packets.isEmpty) else { continue }
      guard let packet = row.packet else { throw BenchError(text: "\(path):\(number): not `send_ms,arrival_ms`: \(row.text)") }
      trace.packets.append(packet)
    }
    guard ferror(file) == 0 else { throw BenchError(text: "\(path): \(String(cString: strerror(errno)))") }
    guard !trace.packets.isEmpty else { throw BenchError(text: "\(path): no rows `send_ms,arrival_ms`") }
    try trace.putInOrder(path)
    return trace
  }

  private typealias Row = (text: String, packet: (sent: Double, arrived: Double?)?)

  /// nil for a line without a packet.
  private static func row(_ line: String, isFirst: Bool) throws -> Row? {
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

  private mutating func putInOrder(_ path: String) throws {
    let sorted = packets.enumerated().sorted { ($0.element.sent, $0.offset) < ($1.element.sent, $1.offset) }
    packets = sorted.map(\.element)
    guard let first = packets.first, let last = packets.last else { return }
    guard last.sent - first.sent < Double(packets.count) * 40 + 60_000 else {
      throw BenchError(text: "\(path): send times span \(fixed(last.sent - first.sent, 0)) ms: these are no 20 ms packets")
    }
  }
}
