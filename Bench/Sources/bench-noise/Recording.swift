import AudioCodecs
import BenchKit
import Glibc

/// Packets that an encoder made which is not ours, from a file: the encoding's name in lower case and a line end, then for each packet
/// its length in two octets, the higher first, and its octets (Tests/Vectors/encoders, Tests/Vectors/voices).
struct Recording {
  let name: String
  let encoding: AudioEncoding
  private(set) var packets: [[UInt8]] = []

  /// Those beside the tests; none where the sources are not.
  static var kept: [Recording] {
    let encoders = ["ffmpegG722", "ffmpegCELT", "libopusAudio"].map { "encoders/" + $0 }
    let names = encoders + ["ruPCMU", "ruG722", "ruOpus"].map { "voices/" + $0 }
    let folder = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    return names.compactMap { try? Recording("/\(folder)/Tests/Vectors/\($0).packets") }
  }

  init(_ path: String) throws {
    guard let file = fopen(path, "r") else { throw BenchError(text: "\(path): \(String(cString: strerror(errno)))") }
    defer { fclose(file) }
    var octets = [UInt8](repeating: 0, count: 4_000_000)
    octets.removeLast(octets.count - fread(&octets, 1, octets.count, file))
    let first = octets.prefix { $0 != 10 }
    let encodings: [String: AudioEncoding] = ["opus": .opus, "g722": .g722, "pcmu": .pcmu, "pcma": .pcma]
    guard let encoding = encodings[String(decoding: first, as: UTF8.self)] else {
      throw BenchError(text: "\(path): no recording")
    }
    self.encoding = encoding
    name = String(path.split(separator: "/").last?.prefix { $0 != "." } ?? "recording")
    var place = first.count + 1
    while place + 2 <= octets.count {
      let end = place + 2 + Int(octets[place]) << 8 + Int(octets[place + 1])
      guard end <= octets.count else { throw BenchError(text: "\(path): cut off") }
      packets.append(Array(octets[place + 2..<end]))
      place = end
    }
  }
}
