import Bytes
import Glibc

/// A recorded or made network: for each 20 ms packet when it was sent and when it came, in milliseconds; nil when it was lost.
struct Trace {
  var name: String
  var packets: [(sent: Double, arrived: Double?)]

  /// Reads `send_ms,arrival_ms` lines, `send_ms,lost` for a loss; the first line may be a heading.
  static func read(_ path: String) throws -> Trace {
    guard let file = fopen(path, "r") else { throw TraceError(text: "\(path): cannot be opened") }
    defer { fclose(file) }
    var trace = Trace(name: path.split(separator: "/").last.map(String.init) ?? path, packets: [])
    var number = 0
    while let line = readLine(from: file) {
      number += 1
      let fields = line.split(separator: ",")
      guard fields.count == 2, let sent = Double(fields[0]) else {
        if number == 1 { continue }
        throw TraceError(text: "\(path):\(number): not `send_ms,arrival_ms`")
      }
      trace.packets.append((sent, Double(fields[1])))
    }
    return trace
  }

  private static func readLine(from file: UnsafeMutablePointer<FILE>) -> String? {
    var line: UnsafeMutablePointer<CChar>?
    var capacity = 0
    defer { free(line) }
    let length = getline(&line, &capacity, file)
    guard length > 0, let line else { return nil }
    return String(cString: line).split(whereSeparator: \.isWhitespace).joined()
  }

  /// Made here: `seconds` of packets with a share lost, a share swapped, exponential jitter and now and then a spike.
  static func made(_ name: String, seconds: Int, loss: Double, jitter: Double, spikeEvery: Int, spike: Double, seed: UInt64)
    -> Trace
  {
    var random = SplitMix64(seed: seed)
    func unit() -> Double { Double(random.next() >> 11) / Double(1 << 53) }
    var spikeUntil = -1.0
    let packets: [(sent: Double, arrived: Double?)] = (0..<seconds * 50).map { number in
      let sent = Double(number) * 20
      if spikeEvery > 0, Int(random.next() % UInt64(spikeEvery)) == 0 { spikeUntil = sent + spike * (0.5 + unit()) }
      let delay = -log(1 - unit() * 0.9999) * jitter
      return (sent, unit() < loss ? nil : 30 + max(sent + delay, spikeUntil))
    }
    return Trace(name: name, packets: packets)
  }
}

struct TraceError: Error, CustomStringConvertible {
  var text: String
  var description: String { text }
}
