import RESP

/// The first byte chooses where the stream is cut: the same values, within their bounds.
@Sendable func fuzzRESP(_ bytes: [UInt8]) {
  guard let first = bytes.first else { return }
  let stream = Array(bytes.dropFirst())
  func values(_ step: Int) -> [RESPValue] {
    guard let reader = RESPReader(RESPReader.Bounds(depth: 4, elements: 256, bytes: 2_048)) else { return [] }
    var out: [RESPValue] = []
    var offset = 0
    while offset < stream.count {
      let end = min(stream.count, offset + step)
      do {
        try stream[offset..<end].withUnsafeBytes { try reader.append($0) }
        while let value = try reader.next() { out.append(value) }
      } catch {
        break
      }
      offset = end
    }
    return out
  }
  precondition(values(Int(first % 16) + 1) == values(65_536), "a split changed what was read")
}
