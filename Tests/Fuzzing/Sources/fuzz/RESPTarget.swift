import RESP

/// The first byte chooses where the stream is cut: the same values, within their bounds.
@Sendable func fuzzRESP(_ bytes: [UInt8]) {
  guard let first = bytes.first else { return }
  let stream = Array(bytes.dropFirst())
  func values(_ step: Int) -> [RESPValue] {
    guard let reader = RESPReader(RESPReader.Bounds(depth: 4, elements: 256, bytes: 2_048)) else { return [] }
    var out: [RESPValue] = []
    var place = 0
    while place < stream.count {
      let end = min(stream.count, place + step)
      do {
        try stream[place..<end].withUnsafeBytes { try reader.append($0) }
        while let value = try reader.next() { out.append(value) }
      } catch {
        break
      }
      place = end
    }
    return out
  }
  precondition(values(Int(first % 16) + 1) == values(65_536), "a split changed what was read")
}
